"""What the dual methods share: their options, their constants, and what they refuse."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.local_solvers import Newton, Solver, newton
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation


class DualMethod(Algorithm):
    """Methods on the dual, min Σ f_i*(y_i) with Σ y_i = 0, of strongly convex f_i; clients have ``y`` and ``w``."""

    eta: Annotated[float, Meta(gt=0, description="step size η")] = 1.0
    solver: Annotated[Solver, Meta(description="how clients solve (1)")] = Newton()
    dual: Annotated[
        bool, Meta(description="record the dual objective Σ f_i*(y_i): every client solves (1) at every evaluation")
    ] = False

    demands: ClassVar[str] = (
        "strongly convex f_i, so set the problem's regularisation above 0, and bias = false where there is one"
    )
    tuned_by: ClassVar[str] = "eta"
    watches: ClassVar[tuple[str, ...]] = ("dual_objective",)

    def needs(self) -> tuple[str, ...]:
        return "convexity", "lipschitz", *(("hessian",) if self.dual else ()), *self.solver.needs()

    def work(self, d: Array) -> Array | None:
        passes = self.solver.passes()
        return None if passes is None else passes * d

    def verify(self, selected: int) -> None:
        """Refuse selections of one client."""
        if selected < 2:
            raise UserError(
                f"selection takes {selected} client a round, but {self.label()} needs at least 2: with one client the "
                "mean equals its own model, so the dual variables never change"
            )

    def check(self, f: Local) -> None:
        """Refuse f_i that are not strongly convex."""
        if not (f.convexity() > 0).all():
            raise UserError(f"{self.label()} cannot run on {f.problem.label()} as it stands: it needs {self.demands}")

    def constants(self, fed: Federation) -> tuple[float, float, float]:
        """α = min α_i, β = max r_i and (τ − 1)/(N − 1)."""
        beta, alpha = fed.max(self.bounds)
        return -float(alpha), float(beta), max(fed.cohort - 1, 1) / max(fed.m - 1, 1)

    def bounds(self, f: Local, client: Any) -> tuple[Any, tuple[Array, Array]]:
        return client, (f.lipschitz(), -f.convexity())

    def watch(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """f_i*(y_i) = ⟨w, y_i⟩ − f_i(w) at the minimiser w of (1)."""
        if not self.dual:
            return (np.zeros(len(f)),)
        w = newton(f, client.y, client.w, 1e-10)
        return (np.vecdot(w, client.y) - f.value(w),)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return watched if self.dual else {}
