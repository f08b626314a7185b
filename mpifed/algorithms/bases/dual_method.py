"""What the dual methods share: their options, their constants, how models are averaged, and what they refuse."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, tuned
from mpifed.algorithms.parts.local_solvers import Newton, Solver, newton
from mpifed.algorithms.parts.step_sizes import Step
from mpifed.core.errors import UserError
from mpifed.federation.method import ServerState
from mpifed.federation.traits import Mean, Need, Recorded, Sum, Upload, demands


class DualState(ServerState, Protocol):
    """What servers of dual methods know of all clients."""

    @property
    def alpha(self) -> float: ...  # α = min α_i
    @property
    def beta(self) -> float: ...  # β = max r_i
    @property
    def share(self) -> float: ...  # (τ − 1)/(N − 1)


class DualMethod(Algorithm):
    """Methods on the dual, min Σ f_i*(y_i) with Σ y_i = 0, of strongly convex f_i; clients have ``y`` and ``w``.

    (2) with Λ = diag(1/α_i): ŵ_i = α_i(w_i − w̄), w̄ = Σ α_j w_j / Σ α_j over the selected clients. Λ = I/α has the same
    α = min α_i for all, and w̄ is the plain mean.
    """

    eta: Annotated[float, tuned("step size η", gt=0)] = 1.0
    schedule: Annotated[Step | None, Meta(description="rule for η of round 1, 2 … (k = 0, 1 …), instead of eta")] = None
    solver: Annotated[Solver, Meta(description="how clients solve (1)")] = Newton()
    scaling: Annotated[Literal["common", "own"], Meta(description="Λ of (2): I/α with α = min α_i, or diag(1/α_i)")] = (
        "common"
    )
    model: Annotated[
        Literal["mean", "random"], Meta(description="w̄ of the round, or w_i of a random selected client as in (4), (5)")
    ] = "mean"
    dual: Annotated[
        bool, Meta(description="record the dual objective Σ f_i*(y_i): every client solves (1) at every evaluation")
    ] = False

    requires = (
        Need(
            "convexity",
            also="strongly convex f_i, so set the problem's regularisation above 0, and bias = false where there is "
            "one",
        ),
        Need("lipschitz"),
        Need("hessian", when={"dual": True}),
    )
    mean = Mean.COUPLED
    upload = Upload(
        single={"model": "random"},
        exact={"down": "Σ y_i = 0 must hold, and each client takes the mean itself off its own w_i"},
    )

    def __post_init__(self) -> None:
        if self.schedule is None:
            return
        if self.eta != 1.0:
            raise ValueError("eta and schedule exclude each other: write the factor into the schedule's a")
        # a rule that looks at d_i gives an array, also for one client
        if np.ndim(self.schedule.gamma(0, 1, np.ones((1, 1)))):
            raise ValueError(
                f"schedule = {self.schedule.label()} is wrong: Σ y_i = 0 needs one η for all clients, so take one "
                "that does not depend on d_i, such as constant or log2"
            )

    def work(self, d: Array) -> Array | None:
        return self.solver.work(d)

    def verify(self, selected: int) -> None:
        """Refuse selections of one client."""
        if selected < 2:
            raise UserError(
                f"selection takes {selected} client a round, but {self.label()} needs at least 2: with one client the "
                "mean equals its own model, so the dual variables never change"
            )

    def check(self, f: Local) -> None:
        """Refuse f_i that are not strongly convex."""
        if not f.xp.all(f.convexity() > 0):
            raise UserError(f"{self.label()} cannot run on {f.problem.label()} as it stands: it needs {demands(self)}")

    def constants(self, fed: Federation) -> tuple[float, float, float]:
        """α = min α_i, β = max r_i and (τ − 1)/(N − 1)."""
        # one request for both: the least α_i is the largest of −α_i
        beta, alpha = fed.max(self.bounds)
        return -float(alpha), float(beta), max(fed.cohort - 1, 1) / max(fed.m - 1, 1)

    def bounds(self, f: Local, client: Any) -> tuple[Any, tuple[Array, Array]]:
        return client, (f.lipschitz(), -f.convexity())

    def collect(self, fed: Federation, server: DualState, to: Array | None) -> Array:
        """w̄ of the clients ``to``, which solve (1)."""
        fed.send(self.solve, server.alpha, server.beta, server.share, to=to)
        return self.average(fed, fed.arrivals())

    def average(self, fed: Federation, arrived: Array | None) -> Array:
        """w̄ of the clients whose w_i have arrived."""
        if self.scaling == "common":
            return np.asarray(fed.mean(of=arrived))
        total, weight = fed.sum(of=arrived)
        return np.asarray(total / weight)

    @abstractmethod
    def solve(self, f: Local, client: Any, alpha: float, beta: float, share: float) -> tuple[Any, Any]:
        """Solve (1): the new state, and ``share`` of w_i."""

    def select(self, fed: Federation, server: DualState) -> Array | None:
        """The clients of a selection; those that are scored solve (1)."""
        return fed.select(server.x, given=(server.alpha, server.beta, server.share))

    def score_move(self, f: Local, client: Any, x: Array, size: int, *constants: float) -> tuple[Any, Array]:
        """‖√α_i (w_i − x)‖, the length of ŵ_i in the norm of Λ if w̄ were x; the common α counts as 1.  (c,)"""
        client, _ = self.solve(f, client, *constants)
        away = client.w - x
        square = f.xp.vecdot(away, away)
        return client, f.xp.sqrt(square if self.scaling == "common" else f.convexity() * square)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """r_i; with a scaling of their own r_i/α_i, and α_i: the law of the theorem in docs/studies/selection.md."""
        if self.scaling == "common":
            return super().importance(f, client)
        return f.lipschitz() / f.convexity(), f.convexity()

    def output(self, fed: Federation, mean: Array, to: Array | None) -> Array:
        """The model of the round: w̄, or the w_i that one of the clients ``to`` has uploaded."""
        if self.model == "mean":
            return mean
        # the server has all w_i already, but the sum alone has reached it in this program: so it is not charged again
        one = fed.rng.integers(fed.m if to is None else len(to))
        return fed.mean(self.reveal, to=np.array([one if to is None else to[one]]), charge=False)

    def reveal(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, client.w

    def rate(self, fed: Federation) -> float:
        """η of the round."""
        return self.eta if self.schedule is None else float(self.schedule.gamma(fed.round - 1, 1, np.ones((1, 1))))

    def common(self, server: DualState) -> float:
        """The α that all clients share; 1 where they multiply by their own α_i."""
        return float(server.alpha) if self.scaling == "common" else 1.0

    def share(self, f: Local, w: Array) -> Array | tuple[Array, Array]:
        """w_i (c, n), or α_i w_i and α_i (c,), of which the server makes w̄."""
        if self.scaling == "common":
            return w
        own = f.xp.astype(f.convexity(), w.dtype)
        return own[:, None] * w, own

    def received(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any:
        """w_i as the server has it, so that Σ y_i = 0 stays."""
        return client._replace(w=upload[0] if self.scaling == "common" else upload[0] / upload[1][:, None])

    def descent(self, f: Local, w: Array, mean: Array, scale: float) -> Array:
        """η ŵ_i (c, n) of (2), where ``scale`` is η times the common α."""
        return (scale if self.scaling == "common" else scale * f.xp.astype(f.convexity()[:, None], w.dtype)) * (
            w - mean
        )

    def record(self, f: Local, client: Any, x: Array) -> Recorded:
        """f_i*(y_i) = ⟨w, y_i⟩ − f_i(w) at the minimiser w of (1)."""
        if not self.dual:
            return {}
        w = newton(f, client.y, client.w, 1e-10)
        return {"dual_objective": Sum(f.xp.vecdot(w, client.y) - f.value(w))}
