"""Base of the dual methods: options, constants, averages of local models, and refused settings."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, to_tune
from mpifed.algorithms.parts.local_solvers import NewtonSolver, Solver, minimise_by_newton
from mpifed.algorithms.parts.step_sizes import Rate, rate_at
from mpifed.core.errors import UserError
from mpifed.federation.method import ServerState
from mpifed.federation.traits import MeanEstimate, RecordValues, Requirement, Sum, Upload, further_requirements


class DualState(ServerState, Protocol):
    """Server state of a dual method: constants of all clients."""

    @property
    def alpha(self) -> float: ...  # α = min α_i
    @property
    def beta(self) -> float: ...  # β = max r_i
    @property
    def share(self) -> float: ...  # (τ − 1)/(N − 1)


class DualMethod(Algorithm):
    """Base of methods on the dual, min Σ f_i*(y_i) with Σ y_i = 0, f_i strongly convex; states have ``y``, ``w``.

    (2) with Λ = diag(1/α_i): ŵ_i = α_i(w_i − w̄), w̄ = Σ α_j w_j / Σ α_j over the selected clients. Λ = I/α has the same
    α = min α_i for all, and w̄ is the plain mean.
    """

    eta: Annotated[Rate, to_tune("step size η")] = 1.0
    solver: Annotated[Solver, Meta(description="how clients solve (1)")] = NewtonSolver()
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
        Requirement(
            "convexity",
            also="strongly convex f_i, so set the problem's regularisation above 0, and bias = false where there is "
            "one",
        ),
        Requirement("lipschitz"),
        Requirement("hessian", when={"dual": True}),
    )
    mean_estimate = MeanEstimate.COUPLED
    upload = Upload(
        single={"model": "random"},
        exact={"down": "Σ y_i = 0 must hold, and each client takes the mean itself off its own w_i"},
    )

    def sample_gradients(self, d: Array) -> Array | None:
        return self.solver.sample_gradients(d)

    def verify(self, selected: int) -> None:
        """Refuse a selection of one client."""
        if selected < 2:
            raise UserError(
                f"selection takes {selected} client a round, but {self.label()} needs at least 2: with one client the "
                "mean equals its own model, so the dual variables never change"
            )

    def require_strong_convexity(self, f: Local) -> None:
        """Raise UserError for f_i that are not strongly convex."""
        if not f.xp.all(f.convexity() > 0):
            raise UserError(
                f"{self.label()} cannot run on {f.problem.label()} as it stands: it needs {further_requirements(self)}"
            )

    def constants(self, fed: Federation) -> tuple[float, float, float]:
        """Return α = min α_i, β = max r_i and (τ − 1)/(N − 1)."""
        # one request for both: the least α_i is the largest of −α_i
        beta, alpha = fed.max(self.bounds)
        return -float(alpha), float(beta), max(fed.clients_per_round - 1, 1) / max(fed.m - 1, 1)

    def bounds(self, f: Local, client: Any) -> tuple[Any, tuple[Array, Array]]:
        return client, (f.lipschitz(), -f.convexity())

    def collect(self, fed: Federation, server: DualState, to: Array | None) -> Array:
        """Return w̄ of the clients ``to`` after they solve (1)."""
        fed.send(self.solve, server.alpha, server.beta, server.share, to=to)
        return self.average(fed, fed.arrivals())

    def average(self, fed: Federation, arrived: Array | None) -> Array:
        """Return w̄ of the clients whose w_i have arrived."""
        if self.scaling == "common":
            return np.asarray(fed.mean(of=arrived))
        total, weight = fed.sum(of=arrived)
        return np.asarray(total / weight)

    @abstractmethod
    def solve(self, f: Local, client: Any, alpha: float, beta: float, share: float) -> tuple[Any, Any]:
        """Solve (1); return the new state and the upload ``weighted_model``."""

    def select(self, fed: Federation, server: DualState) -> Array | None:
        """Return the selected clients; scored ones solve (1) for it."""
        return fed.select(server.x, extra=(server.alpha, server.beta, server.share))

    def score_dual_move(self, f: Local, client: Any, x: Array, size: int, *constants: float) -> tuple[Any, Array]:
        """Return ‖√α_i (w_i − x)‖, the length of ŵ_i in Λ's norm if w̄ were x; a common α counts as 1: (c,)."""
        client, _ = self.solve(f, client, *constants)
        move = client.w - x
        square = f.xp.vecdot(move, move)
        return client, f.xp.sqrt(square if self.scaling == "common" else f.convexity() * square)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Return r_i and 1; with scaling = "own" r_i/α_i and α_i, by the theorem in docs/studies/selection.md."""
        if self.scaling == "common":
            return super().importance(f, client)
        return f.lipschitz() / f.convexity(), f.convexity()

    def output_model(self, fed: Federation, mean: Array, to: Array | None) -> Array:
        """Return the model of the round: w̄, or w_i of one random client of ``to``."""
        if self.model == "mean":
            return mean
        # the server has all w_i, though only their sum reached it in this program: so this is not charged again
        number = fed.rng.integers(fed.m if to is None else len(to))
        return fed.mean(self.reveal, to=np.array([number if to is None else to[number]]), charge=False)

    def reveal(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, client.w

    def rate(self, fed: Federation) -> float:
        """Return η of the round."""
        return float(rate_at(self.eta, fed))

    def common_alpha(self, server: DualState) -> float:
        """Return the α that all clients share; 1 where each multiplies by its own α_i."""
        return float(server.alpha) if self.scaling == "common" else 1.0

    def weighted_model(self, f: Local, w: Array) -> Array | tuple[Array, Array]:
        """Return the upload for w̄: w_i (c, n), or α_i w_i (c, n) and α_i (c,)."""
        if self.scaling == "common":
            return w
        alpha = f.xp.astype(f.convexity(), w.dtype)
        return alpha[:, None] * w, alpha

    def remember_upload(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any:
        """Return the clients' state with w_i as the server has it, so that Σ y_i = 0 stays."""
        return client._replace(w=upload[0] if self.scaling == "common" else upload[0] / upload[1][:, None])

    def dual_step(self, f: Local, w: Array, mean: Array, scale: float) -> Array:
        """Return η ŵ_i of (2): (c, n); ``scale`` is η times the common α."""
        return (scale if self.scaling == "common" else scale * f.xp.astype(f.convexity()[:, None], w.dtype)) * (
            w - mean
        )

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        """Return f_i*(y_i) = ⟨w, y_i⟩ − f_i(w) at the minimiser w of (1)."""
        if not self.dual:
            return {}
        w = minimise_by_newton(f, client.y, client.w, 1e-10)
        return {"dual_objective": Sum(f.xp.vecdot(w, client.y) - f.value(w))}
