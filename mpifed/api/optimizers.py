"""Optimisers by their classes: ``mpifed.optimizers.Adam(beta1=0.8)``."""

from mpifed.algorithms.parts.optimizers import SGD, Adam, AdamW, Momentum

__all__ = ["SGD", "Adam", "AdamW", "Momentum"]
