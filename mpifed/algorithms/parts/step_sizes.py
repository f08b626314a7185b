"""Rules for the step size γ, learning-rate schedules as in torch.optim.lr_scheduler, and rates that take them."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from mpifed.core.arrays import is_number
from mpifed.core.component import Component, StudyTable, analyse_type, copy_table, fields_of
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, PositiveFloat

Factor = Annotated[float, Meta(gt=0, description="factor a")]


class Step(Component):
    """A rule for the step size of iteration k, counted over the whole run from 0.

    >>> class Harmonic(mpifed.algorithms.parts.Step):
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
        "step": "mpifed.algorithms.parts.step_sizes:StepDecay",
        "cosine": "mpifed.algorithms.parts.step_sizes:Cosine",
        "inverse": "mpifed.algorithms.parts.step_sizes:Inverse",
        "warmup": "mpifed.algorithms.parts.step_sizes:Warmup",
    }
    default: ClassVar[str] = "log2"
    kind: ClassVar[str] = "steps"
    checks: ClassVar[str] = "mpifed.algorithms.bases.method_guards"

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Build the rule that ``table`` names; a number is the constant rule."""
        return super().build({"name": "constant", "a": table} if is_number(table) else table, path)

    @classmethod
    def build_beside_number(cls, table: Any, path: str) -> Self:
        """Build the rule of a rate, which is one number for all clients."""
        copy_table(table, path, 'it must be a number > 0, or a rule such as "log2"', short="name")
        rule = cls.build(table, path)
        if np.ndim(rule.gamma(0, 1, ONE_SAMPLE)):
            right = 'a rate is one number for all clients, so take a rule that ignores their samples, such as "log2"'
            raise UserError(f"{path} = {toml_value(rule.label())} is wrong: {right}")
        return rule

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


class StepSchedule(Step):
    """A step size that follows the time t: rounds, or local steps of the whole run."""

    by: Annotated[
        Literal["round", "step"] | None,
        Meta(
            description="unit of t: rounds, or local steps of the whole run, with algorithm.epochs local epochs "
            "(default: round; in ``then`` that of the warm-up)"
        ),
    ] = None

    def time(self, k: int, k0: int) -> int:
        """Return t of iteration k, where a round has ``k0`` iterations."""
        return k if self.by == "step" else k // k0

    def within(self, by: str | None) -> Step:
        return replace(self, by=by) if self.by is None else self


class StepDecay(StepSchedule, tag="step"):
    """γ_t = a · decay^⌊t/every⌋, with t counted from 0 in rounds or local steps.

    Source: torch.optim.lr_scheduler.StepLR, whose gamma is ``decay`` and whose step_size is ``every``.
    """

    # γ follows from the round and from options.
    supports = Supports.EVERYTHING

    a: Factor = 0.01
    decay: Annotated[float, Meta(gt=0, le=1, description="what γ is multiplied by")] = 0.1
    every: Annotated[int, Meta(ge=1, description="rounds or local steps from one factor to the next")] = 30

    def gamma(self, k: int, k0: int, d: Array) -> float:
        return self.a * self.decay ** (self.time(k, k0) // self.every)


class Cosine(StepSchedule, tag="cosine"):
    """γ_t = least + (a − least)(1 + cos(π t/over))/2 until t = over, and ``least`` from then on.

    Source: torch.optim.lr_scheduler.CosineAnnealingLR, whose T_max is ``over`` and whose eta_min is ``least``; it rises
    again afterwards. I. Loshchilov, F. Hutter, "SGDR: Stochastic gradient descent with warm restarts", arXiv:1608.03983
    (2017), (5).
    """

    # γ follows from the round and from options.
    supports = Supports.EVERYTHING

    a: Factor = 0.01
    least: Annotated[float, Meta(ge=0, description="γ at the end")] = 0.0
    over: Annotated[int, Meta(ge=1, description="rounds or local steps until γ is least")] = 100

    def __post_init__(self) -> None:
        if self.least > self.a:
            raise ValueError(f"least = {self.least} is wrong: γ falls from a = {self.a}, so it must be at most that")

    def gamma(self, k: int, k0: int, d: Array) -> float:
        fraction = min(1.0, self.time(k, k0) / self.over)
        return self.least + (self.a - self.least) * (1 + math.cos(math.pi * fraction)) / 2


class Inverse(StepSchedule, tag="inverse"):
    """γ_t = a / (1 + t/over), with t counted from 0 in rounds or local steps: steps 1/k, half of ``a`` at t = over.

    Source: X. Li, K. Huang, W. Yang, S. Wang, Z. Zhang, "On the convergence of FedAvg on non-IID data",
    arXiv:1907.02189 (2020), Theorem 1, whose 2/(μ(γ + t)) has a = 2/(μγ) and over = γ.
    """

    # γ follows from the round and from options.
    supports = Supports.EVERYTHING

    a: Factor = 0.01
    over: Annotated[int, Meta(ge=1, description="rounds or local steps until γ is half of a")] = 1

    def gamma(self, k: int, k0: int, d: Array) -> float:
        return self.a / (1 + self.time(k, k0) / self.over)


class Warmup(StepSchedule, tag="warmup"):
    """γ_t = γ⁰ (first + (1 − first) t/over) before t = over, and from then on the rule ``then``, whose first γ is γ⁰.

    ``by`` is about both, unless ``then`` has one of its own.

    Source: torch.optim.lr_scheduler.LinearLR, whose start_factor is ``first`` and whose total_iters is ``over``, and
    another schedule after it by SequentialLR.
    """

    # γ follows from the round, from options and from the rule ``then``, which has its own ``supports``.
    supports = Supports.EVERYTHING

    over: Annotated[int, Meta(ge=1, description="rounds or local steps until γ is that of the rule ``then``")] = 5
    first: Annotated[float, Meta(gt=0, le=1, description="share of γ⁰ to begin with")] = 1 / 3
    then: Annotated[Step, Meta(description="step sizes after the warm-up, counted from its end")] = ConstantStep()

    def gamma(self, k: int, k0: int, d: Array) -> Array | float:
        t = self.time(k, k0)
        then = self.then.within(self.by)
        if t < self.over:
            return then.gamma(0, k0, d) * (self.first + (1 - self.first) * t / self.over)
        return then.gamma(k - self.over * (1 if self.by == "step" else k0), k0, d)


Rate = PositiveFloat | Step  # type of a step size or learning rate: a number or a schedule, one for all clients
ONE_SAMPLE = np.ones((1, 1))  # numbers d_i of samples; rules that use them give an array, also for one client


def rate_at(rate: float | Step, at: Any, j: int = 0, k0: float = 1) -> Any:
    """Return the number that ``rate`` is in the round of ``at``, a federation or the ``f`` of a client method.

    ``j`` is the local step, from 0, of ``k0`` steps a round: schedules by step count these over the whole run. Clients
    of asynchronous runs have the rate of the round in which they were sent their model: (c, 1).
    """
    if Step not in type(rate).__mro__:
        return rate
    if np.ndim(at.round):
        return at.block.real(at.xp.asarray([[rate_of_round(rate, round, j, k0)] for round in at.round.tolist()]))
    return rate_of_round(rate, at.round, j, k0)


def rate_of_round(rule: Any, round: int, j: int, k0: float) -> float:
    """Return γ in local step ``j`` of a round; before round one that of round one."""
    steps = math.ceil(k0)  # epochs may be a fraction
    return float(rule.gamma((max(round, 1) - 1) * steps + j, steps, ONE_SAMPLE))


def find_schedules(component: StudyTable) -> dict[str, Any]:
    """Return the rates that follow a schedule where they could be a number, by key, such as lr or server.lr."""
    schedules: dict[str, Any] = {}
    for key, field in fields_of(type(component)).items():
        value = getattr(component, field.name)
        if Component in type(value).__mro__:
            schedules |= {f"{key}.{inner}": rule for inner, rule in find_schedules(value).items()}
            if float in analyse_type(field.type)[2]:
                schedules[key] = value
    return schedules
