"""Losses of samples with weights and offsets: f_i = (1/Σ_j v_j) Σ_j v_j ℓ(⟨a_j, x⟩ + o_j, b_j) + regulariser."""

from functools import cache
from inspect import unwrap
from typing import Any, ClassVar

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.problems.base import Factors, Problem, Solve, ones
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.logistic import LogisticLoss
from mpifed.statistics.regression import LogLink

KNOWN = {  # methods that read scores, and those of mpifed that OfSamples replaces
    **{name: (getattr(LinearModel, name),) for name in ("value", "grad", "value_grad", "evaluate", "_value", "_pass")},
    "measure": (LinearModel.measure, LogLink.measure),
    "predict": (LinearModel.predict, LogisticLoss.predict),
}


class OfSamples(LinearModel):
    """What changes in a linear model; blocks are those of data.sample_block, whose ``w`` has the weights already.

    ``plain`` is the problem without weights and offsets; ``frequencies``: weights are numbers of alike samples, else
    the variance of a label is that of the model divided by its weight.
    """

    plain: ClassVar[type[LinearModel]]
    frequencies: ClassVar[bool]

    @classmethod
    def has(cls, name: str) -> bool:
        terms = {"log_likelihood": "log_density", "pearson": "squares"}.get(name)
        if terms is not None and getattr(cls.plain, terms) is getattr(LinearModel, terms):
            return False
        return name != "clipped_grad" and cls.plain.has(name)

    def scores(self, block: Any, X: Array) -> Array:
        """⟨a_j, x_i⟩ + o_j: (c, D)."""
        return block.matvec(X) + block.offset

    def residual(self, block: Any, Z: Array) -> Array:
        return super().residual(block, Z + block.offset)

    def bends(self, block: Any, Z: Array) -> Array:
        return super().bends(block, Z + block.offset)

    def _value(self, block: Any, X: Array, Z: Array) -> Array:
        return super()._value(block, X, Z + block.offset)

    def evaluate(self, block: Any, X: Array) -> tuple[Array, Array, Array | None]:
        Z, G = self._pass(block, X)
        return self._value(block, X, Z), G, self.classes(Z + block.offset)

    def lipschitz(self, block: Any) -> Array:
        return super().lipschitz(block.rooted())

    def least_curvature(self, block: Any) -> Array:
        return super().least_curvature(block.rooted())

    def majorizer_inverse(self, block: Any, scale: float, shift: float, factors: Factors = ones) -> Solve:
        return super().majorizer_inverse(block.rooted(), scale, shift, factors)

    def log_likelihood(self, block: Any, X: Array, dispersion: float) -> Array:
        """Of samples that are there v_j times, or whose dispersion is φ/v_j; where φ is 1 both are Σ v_j ln p_j."""
        real = block.w > 0
        v = np.where(real, block.w * block.d[:, None], 1)
        Z = self.scores(block, X)
        b = np.where(real, block.b, 1)
        if self.frequencies or not self.has("pearson"):
            logs = v * self.log_density(Z, b, dispersion)
        else:
            logs = self.log_density(Z, b, dispersion / v)
        return np.where(real, logs, 0).sum(axis=1)

    def pearson(self, block: Any, X: Array) -> Array:
        """Σ_j v_j (b_j − mean)²/variance: (c,)."""
        return block.d * np.vecdot(block.w, self.squares(self.scores(block, X), block.b))


@cache
def made(plain: type[LinearModel], frequencies: bool) -> type[Problem]:
    """The class of a problem of samples with weights and offsets."""
    own = {"plain": plain, "frequencies": frequencies, "__module__": __name__}
    meta: Any = type(plain)
    return meta(f"{plain.__name__}OfSamples", (OfSamples, plain), own, tag=plain.label())


def takes(problem: type[Problem], name: str) -> bool:
    """Whether samples of a problem may have a column of this name in data.sample_columns.COLUMNS."""
    if not issubclass(problem, LinearModel):
        return False
    if any(unwrap(getattr(problem, key)) not in methods for key, methods in KNOWN.items()):
        return False
    return name != "exposure" or problem.log_link


def of_samples(problem: LinearModel, frequencies: bool) -> Problem:
    """The same problem with samples that have weights and offsets."""
    return made(type(problem), frequencies)(**msgspec.structs.asdict(problem))
