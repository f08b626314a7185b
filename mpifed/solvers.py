"""How a client minimises f_i(w) − ⟨y_i, w⟩, exactly or not."""
from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from mpifed.component import Component
from mpifed.data.clients import Array
from mpifed.local import Local
from mpifed.prox import gradient_descent, newton

Share = Annotated[float, Meta(gt=0, lt=1)]


class Solver(Component):
    """A local solver for α-strongly convex, β-smooth f_i."""

    choices: ClassVar[dict[str, str]] = {"newton": "mpifed.solvers:Newton", "gd": "mpifed.solvers:GradientDescent"}
    default: ClassVar[str] = "newton"
    kind: ClassVar[str] = "solvers"

    def needs(self) -> tuple[str, ...]:
        """What it asks of the problem beside gradients."""
        return ()

    def passes(self) -> int | None:
        """How many gradients of f_i it takes, or None: not known before."""
        return None

    @abstractmethod
    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        """Nearly argmin f_i(w) − ⟨y_i, w⟩, from W: (c, n); ``share`` is (τ − 1)/(N − 1)."""
        raise NotImplementedError


class Newton(Solver, tag="newton"):
    """Newton's method until ‖∇f_i(w) − y_i‖ <= tol."""

    tol: Annotated[float, Meta(gt=0, description="bound of the 2-norm of ∇f_i − y_i")] = 1e-10

    def needs(self) -> tuple[str, ...]:
        return ("hessian",)

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        return newton(f, Y, W, self.tol)


class GradientDescent(Solver, tag="gd"):
    """Gradient steps of size 1/β: ``steps`` of them, or as many as (1 − α/β)^(2k) <= delta asks.

    delta = "theorem" is (1 − κ)/4 with κ = (τ − 1)α/(32(N − 1)β) of Theorem 5.2 (use eta = ¼). Source: feddcd, section 5.
    """

    steps: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="number of steps")] = None
    delta: Annotated[Share | Literal["theorem"] | None, Meta(description="accuracy δ of the oracle, instead of steps")] = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.delta is None):
            raise ValueError("the solver gd needs either steps or delta")

    def passes(self) -> int | None:
        return self.steps

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        return gradient_descent(f, Y, W, self.count(alpha / beta, share), 1 / beta)

    def count(self, ratio: float, share: float) -> int:
        """The number of steps at α/β = ``ratio``."""
        if self.steps is not None:
            return self.steps
        delta = (1 - share * ratio / 32) / 4 if self.delta == "theorem" else self.delta
        assert isinstance(delta, float)
        return 1 if ratio >= 1 else max(1, math.ceil(math.log(delta) / (2 * math.log1p(-ratio)) - 1e-12))
