"""Rules for the step size γ."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from mpifed.core.arrays import is_number
from mpifed.core.component import Component
from mpifed.core.promises import Supports
from mpifed.core.typing import Array

Factor = Annotated[float, Meta(gt=0, description="factor a")]


class Step(Component):
    """A rule for the step size of iteration k, counted over the whole run from 0.

    >>> class Harmonic(mpifed.Step):
    ...     a: float = 0.1
    ...     def gamma(self, k, k0, d):
    ...         return self.a / (1 + k)
    >>> mpifed.run(algorithm=mpifed.algorithms.FedAvg(step=Harmonic(a=0.2)), rounds=2).cr
    2
    """

    choices: ClassVar[dict[str, str]] = {
        "log2": "mpifed.algorithms.parts.step_sizes:Log2",
        "constant": "mpifed.algorithms.parts.step_sizes:ConstantStep",
        "sqrt-samples": "mpifed.algorithms.parts.step_sizes:SqrtSamples",
        "step": "mpifed.algorithms.parts.schedules:StepDecay",
        "cosine": "mpifed.algorithms.parts.schedules:Cosine",
        "warmup": "mpifed.algorithms.parts.schedules:Warmup",
    }
    default: ClassVar[str] = "log2"
    kind: ClassVar[str] = "steps"
    checks: ClassVar[str] = "mpifed.algorithms.parts.part_guards"

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Build the rule that ``table`` names; a number is the constant rule."""
        return super().build({"name": "constant", "a": table} if is_number(table) else table, path)

    def within(self, by: str | None) -> "Step":
        """Return the rule as part of a schedule in the unit ``by``, which it takes if it has none of its own."""
        return self

    @abstractmethod
    def gamma(self, k: int, k0: int, d: Array) -> Array | float:
        """Return γ of iteration k for clients of d (c, 1) samples, ``k0`` iterations a round: (c, 1) or one number."""


class Log2(Step, tag="log2"):
    """γ_k = a / log2(k + 2).  Source: fedgia (Zhou, Li, arXiv:2205.01438, 2022), section V.D."""

    # γ follows from the iteration.
    supports = Supports.EVERYTHING

    a: Factor = 0.01

    def gamma(self, k: int, k0: int, d: Array) -> float:
        return self.a / math.log2(k + 2)


class ConstantStep(Step, tag="constant"):
    """γ = a."""

    # γ is an option.
    supports = Supports.EVERYTHING

    a: Factor = 0.01

    def gamma(self, k: int, k0: int, d: Array) -> float:
        return self.a


class SqrtSamples(Step, tag="sqrt-samples"):
    """γ_i = a d_i / √(2 k0 + ⌊k/k0⌋).  Source: fedepm (Zhou, Li, arXiv:2208.11231, 2022), (38)."""

    # γ follows from numbers of samples, which are public here.
    supports = Supports.EVERYTHING

    a: Factor = 2.0

    def gamma(self, k: int, k0: int, d: Array) -> Array:
        return self.a * d / math.sqrt(2 * k0 + k // k0)
