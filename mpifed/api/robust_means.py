"""Robust means by their classes: ``mpifed.robust_means.TrimmedMean(share=0.2)``."""

from mpifed.features.robust.means import CentredClipping, GeometricMedian, Krum, Median, TrimmedMean

__all__ = ["CentredClipping", "GeometricMedian", "Krum", "Median", "TrimmedMean"]
