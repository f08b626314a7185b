"""Steps by their classes: ``mpifed.steps.Constant(a=0.1)``."""

from __future__ import annotations

from mpifed.algorithms.step_sizes import Constant, Log2, SqrtSamples

__all__ = ["Constant", "Log2", "SqrtSamples"]


def __dir__() -> list[str]:
    return __all__
