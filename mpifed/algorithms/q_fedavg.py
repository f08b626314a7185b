"""q-FedAvg, Algorithm 2 of T. Li, M. Sanjabi, A. Beirami, V. Smith, "Fair resource allocation in federated learning",
arXiv:1905.10497 (2020)."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed import RunError
from mpifed.algorithms.parts import (
    SGD,
    Client,
    LocalEpochs,
    LocalOptimizer,
    Max,
    PlotStyle,
    Rate,
    RecordValues,
    Server,
    Sum,
    count_steps,
    rate_at,
    squared_norms,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload

LEAST = 1e-10  # a smaller f_i counts as this, so that no weight is 0
LARGE = 10  # for larger q powers overflow, unless the f_i are divided by the largest of them


class QFedAvg(LocalEpochs, tag="q-fedavg"):
    """FedAvg that is fair: the larger a client's f_i, the more its change counts.

    It minimises the q-FFL objective Σ p_i f_i(x)^(q+1)/(q+1), recorded as ``fair_objective``; ``objective`` is
    Σ p_i f_i as with every method.  w_i by local steps of size lr from x;  d_i = (x − w_i)/lr;
    x⁺ = x − Σ f_i(x)^q d_i / Σ [q f_i(x)^(q−1) ‖d_i‖² + f_i(x)^q/lr] over the selected clients.
    Above q = 10 the selected send f_i first, and these powers are of f_i over the largest: the step is the same.
    The f_i must not fall below 0, as those of quadratic may, unless q = 0: the run ends where one does.
    One full step, ``k0`` = 1, is q-FedSGD, Algorithm 1, with L = 1/lr; q = 0 is FedAvg. A schedule
    gives all steps of a round one lr.  Source: Algorithm 2.
    """

    title = "q-FedAvg"
    plot_style = PlotStyle("sky", 1, 4)
    # Mini-batches come from f.rng, and a round reads x alone.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("arXiv:1905.10497 proves that f_i become even, not how fast the method converges")

    q: Annotated[float, Meta(ge=0, description="fairness q; 0: a plain mean")] = 1.0
    lr: Annotated[Rate, to_tune("step size of the local iterations, 1/L")] = 0.01
    optimizer: LocalOptimizer = SGD()

    mean_estimate = Unsupported("its step is the quotient of two means over the selected")
    upload = Upload(content="change", averaged=True)
    asynchronous = Unsupported("changes count by f_i at the server's model, which moves on while clients compute")

    def sample_gradients(self, d: Array) -> Array:
        return (2 * d if self.q > LARGE else d) + super().sample_gradients(d)

    def local_steps(self, d: Array) -> Array | None:
        return count_steps(d, self.k0, self.epochs, self.batch_size, self.last_batch)

    def message_size(self, n: int) -> tuple[int, int]:
        return (2 * n + 1, n + 2) if self.q > LARGE else (n, n + 1)

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x
        chosen = fed.select(x)
        if self.q > LARGE:
            top = fed.max(self.loss, x, to=chosen)
            change, length = fed.mean(self.scaled, x, top, to=chosen, each=fed.local_steps)
        else:
            change, length = fed.mean(self.update, x, to=chosen, each=fed.local_steps)
        return Server(x - change / length)

    def loss(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return f_i(x), of which the server takes the largest."""
        return client, f.xp.maximum(self.losses(f, x), LEAST)

    def scaled(self, f: Local, client: Client, x: Array, top: float, most: Array | None = None) -> tuple[Client, Any]:
        """Call ``update`` with f_i divided by ``top``."""
        return self.update(f, client, x, most, top)

    def update(
        self, f: Local, client: Client, x: Array, most: Array | None = None, top: float = 1.0
    ) -> tuple[Client, Any]:
        """Upload f_i^q d_i and q f_i^(q−1) ‖d_i‖² + f_i^q/lr, divided by top^q: n + 1 numbers."""
        F = f.xp.maximum(self.losses(f, x), LEAST) / top
        lr = rate_at(self.lr, f, k0=self.epochs or self.k0)
        w = f.point(x, self.optimizer.spans and self.k0, self.batch_size, epochs=self.epochs)
        memory = None
        for _, batch, has in f.steps(self.k0, self.epochs, self.batch_size, most, self.last_batch):
            w, memory = self.optimizer.descend(batch, w, lr * has, memory)
        lr = lr or 1.0  # a schedule may come down to 0: then w_i = x
        d = (x - f.array(w)) / lr
        weight = F**self.q
        return client, (weight[:, None] * d, self.q * F ** (self.q - 1) / top * squared_norms(d) + weight / lr)

    def record(self, f: Local, client: Client, x: Array) -> RecordValues:
        F = self.losses(f, x)
        if self.q <= LARGE:
            return {"fair_objective": Sum(F ** (self.q + 1) / (self.q + 1), weighted=True)}
        # recorded numbers must be finite; the objective is infinite where the largest power is
        with np.errstate(over="ignore"):
            powers = F ** (self.q + 1) / (self.q + 1)
        finite = f.xp.isfinite(powers)
        return {
            "fair_objective": Sum(f.xp.where(finite, powers, 0), weighted=True),
            "too_large": Max(1.0 * ~finite),
        }

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:
        return {"fair_objective": np.inf if row.get("too_large") else row["fair_objective"] / m}

    def losses(self, f: Local, x: Array) -> Array:
        """Return f_i(x): (c,); raise RunError where one is below 0, because its powers make no sense."""
        F = f.value(x)
        if self.q and (F < 0).any():
            raise RunError(
                f"q-fedavg takes powers of the f_i, which must not be below 0: {f.problem.label()} has such ones; take "
                "q = 0, or another problem"
            )
        return F
