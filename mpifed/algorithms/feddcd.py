"""FedDCD: Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated learning", Algorithm 1."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.local_solvers import Newton, Solver, newton
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation


class Client(NamedTuple):
    y: Array  # (c, n) dual variables
    w: Array  # (c, n) last local model


class Server(NamedTuple):
    x: Array  # (n,) model, the mean of the w_i of the round
    alpha: float  # strong convexity α = min α_i
    beta: float  # smoothness β = max r_i
    share: float  # (τ − 1)/(N − 1)


class FedDCD(Algorithm, tag="feddcd"):
    """Dual coordinate descent: chosen clients upload the minimiser of their tilted objective, the mean comes back.

    w_i = argmin f_i(w) − ⟨y_i, w⟩;  ŵ_i = α(w_i − mean of the chosen);  y_i ← y_i − eta ŵ_i, so that Σ y_i = 0 stays.
    The model is the mean of the round's w_i. Strongly convex f_i are needed: α = min α_i. An iteration is one exchange:
    w_i up, the mean down.  Source: feddcd (1), (2), Algorithm 1, Λ = I/α; inexact oracle: section 5.
    """

    eta: Annotated[float, Meta(gt=0, description="step size η")] = 1.0
    solver: Annotated[Solver, Meta(description="how clients solve (1)")] = Newton()
    dual: Annotated[
        bool, Meta(description="record the dual objective Σ f_i*(y_i): every client solves (1) to measure")
    ] = False

    watches: ClassVar[tuple[str, ...]] = ("dual_objective",)

    def needs(self) -> tuple[str, ...]:
        return "convexity", "lipschitz", *(("hessian",) if self.dual else ()), *self.solver.needs()

    def work(self, d: Array) -> Array | None:
        return None if self.solver.passes() is None else self.solver.passes() * d

    def join(self, f: Local) -> Any:
        self.check(f)
        return Client(y=f.zeros(), w=f.initial())

    def start(self, fed: Federation) -> Server:
        beta, alpha = fed.max(self.bounds)
        return Server(
            x=fed.initial(), alpha=-float(alpha), beta=float(beta), share=max(fed.selected - 1, 1) / max(fed.m - 1, 1)
        )

    def round(self, fed: Federation, server: Server) -> Server:
        chosen = fed.select(server.x)
        x = fed.mean(self.solve, *server[1:], to=chosen)  # lines 4–6
        fed.call(self.ascend, x, server.alpha, to=chosen)  # lines 7–12
        return server._replace(x=x)

    def solve(self, f: Local, client: Client, alpha: float, beta: float, share: float) -> tuple[Client, Array]:
        """(1) from the client's own last w_i."""
        w = self.solver.minimise(f, client.y, client.w, alpha, beta, share)
        return client._replace(w=w), w

    def ascend(self, f: Local, client: Client, mean: Array, alpha: float) -> tuple[Client, None]:
        """(2) and the step of the dual variables."""
        return client._replace(y=client.y - self.eta * alpha * (client.w - mean)), None

    def verify(self, selected: int) -> None:
        """Refuse draws of one client, who would only meet himself."""
        if selected < 2:
            raise UserError(
                f"selection draws {selected} client a round, but {self.label()} needs at least 2: "
                "alone a client is his own mean and nothing moves"
            )

    def check(self, f: Local) -> None:
        """Refuse f_i that are not strongly convex."""
        if not (f.convexity() > 0).all():
            raise UserError(
                f"{self.label()} cannot run on {f.problem.label()} as it stands: it needs strongly convex f_i, so "
                "set the problem's regularisation above 0, and bias = false where there is one"
            )

    def bounds(self, f: Local, client: Client) -> tuple[Client, tuple[Array, Array]]:
        return client, (f.lipschitz(), -f.convexity())

    def watch(self, f: Local, client: Any) -> tuple[Array, ...]:
        """f_i*(y_i) = ⟨w, y_i⟩ − f_i(w) at the minimiser w of (1)."""
        if not self.dual:
            return (np.zeros(len(f)),)
        w = newton(f, client.y, client.w, 1e-10)
        return (np.vecdot(w, client.y) - f.value(w),)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return watched if self.dual else {}
