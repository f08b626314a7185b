"""Solvers of min f_i(w) − ⟨y_i, w⟩ by gradient steps on all samples, with all steps in one launch on a GPU."""

from collections.abc import Sequence
from typing import Any

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.launched.descent import Pull, descended
from mpifed.algorithms.parts.local_solvers import GradientDescent, Penalised
from mpifed.algorithms.parts.stochastic_solvers import SGD


class LaunchedDescent(GradientDescent):
    """Gradient descent."""

    def suits(self) -> bool:
        return True

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        return minimised(f, Y, W, self.count(alpha / beta, share) * [1 / beta])


class LaunchedSGD(SGD):
    """Stochastic gradient descent with all samples in every step."""

    def suits(self) -> bool:
        return self.batch_size == 0 and not self.clip

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        return minimised(f, Y, W, (self.steps or self.epochs) * [self.lr])


def minimised(f: Local, Y: Array, W: Array, gammas: Sequence[float]) -> Array:
    """W after the steps; the gradient of a penalty (ρ/2)‖w‖², where f has one, pulls w to 0."""
    pull = Pull(f.rho, f.xp.zeros(f.n)) if isinstance(f, Penalised) else None
    return descended(f, W, gammas, -Y, pull)


SOLVERS: dict[type, Any] = {GradientDescent: LaunchedDescent, SGD: LaunchedSGD}
