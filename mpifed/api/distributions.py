"""Distributions by their classes: ``mpifed.distributions.Lognormal(median=1e4)``."""

from __future__ import annotations

from mpifed.federation.timing.distributions import Constant, Exponential, Lognormal, Pareto, Uniform

__all__ = ["Constant", "Exponential", "Lognormal", "Pareto", "Uniform"]


def __dir__() -> list[str]:
    return __all__
