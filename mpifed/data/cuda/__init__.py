"""Kernels of linear models for a GPU: what they compute and how to call them is told in ``launch``."""
