"""Distributions by their classes: ``mpifed.distributions.Lognormal(median=1e4)``."""

from mpifed.features.simulated_time.distributions import (
    ConstantDistribution,
    ExponentialDistribution,
    FileDistribution,
    ListDistribution,
    Lognormal,
    Pareto,
    UniformDistribution,
)

__all__ = [
    "ConstantDistribution",
    "ExponentialDistribution",
    "FileDistribution",
    "ListDistribution",
    "Lognormal",
    "Pareto",
    "UniformDistribution",
]
