"""Steps by their classes: ``mpifed.steps.ConstantStep(a=0.1)``."""

from mpifed.algorithms.parts.schedules import Cosine, StepDecay, Warmup
from mpifed.algorithms.parts.step_sizes import ConstantStep, Log2, SqrtSamples

__all__ = ["ConstantStep", "Cosine", "Log2", "SqrtSamples", "StepDecay", "Warmup"]
