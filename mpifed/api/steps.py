"""Steps by their classes: ``mpifed.steps.Constant(a=0.1)``."""

from mpifed.algorithms.parts.schedules import Cosine, StepDecay, Warmup
from mpifed.algorithms.parts.step_sizes import Constant, Log2, SqrtSamples

__all__ = ["Constant", "Cosine", "Log2", "SqrtSamples", "StepDecay", "Warmup"]
