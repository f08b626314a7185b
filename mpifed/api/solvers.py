"""Solvers by their classes: ``mpifed.solvers.Newton(tol=1e-6)``."""

from __future__ import annotations

from mpifed.algorithms.local_solvers import GradientDescent, Newton

__all__ = ["GradientDescent", "Newton"]


def __dir__() -> list[str]:
    return __all__
