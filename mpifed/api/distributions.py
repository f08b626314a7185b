"""Distributions by their classes: ``mpifed.distributions.Lognormal(median=1e4)``."""

from mpifed.features.simulated_time.distributions import (
    Constant,
    Exponential,
    File,
    Listed,
    Lognormal,
    Pareto,
    Uniform,
)

__all__ = ["Constant", "Exponential", "File", "Listed", "Lognormal", "Pareto", "Uniform"]
