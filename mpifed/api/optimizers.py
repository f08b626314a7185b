"""Optimizers by their classes: ``mpifed.optimizers.Adam(lr=0.01)``."""

from __future__ import annotations

from mpifed.algorithms.optimizers import SGD, Adam, AdamW, Momentum

__all__ = ["SGD", "Adam", "AdamW", "Momentum"]


def __dir__() -> list[str]:
    return __all__
