"""Ditto, Algorithm 1 of T. Li, S. Hu, A. Beirami, V. Smith, "Ditto: Fair and robust federated learning through
personalization", arXiv:2012.04221 (2021)."""

from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.parts import PlotStyle, Rate, count_gradients, rate_at
from mpifed.extend import Array, Local, Supports, Unsupported


class Client(NamedTuple):
    w: Array  # (c, n) last local model where it is needed again, else (c, 0)
    theta: Array  # (c, n) personal models


class Ditto(FedAvg, tag="ditto"):
    """FedAvg, beside which every selected client trains a personal model that stays close to the server's.

    w_i and x⁺ as in FedAvg;  θ_i ← θ_i − lr (∇f_i(θ_i) + λ(θ_i − x)), ``inner`` times, x being the model received.
    Personal models never travel, and x does not depend on them. With lam = 0 they are trained on local data alone.
    Source: Algorithm 1, with FedAvg for the global model.
    """

    title = "Ditto"
    plot_style = PlotStyle("brown", 6, 3)
    # Personal models are in the state of clients; memories of optimisers begin anew in every round.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:2012.04221 begin from a rate of the global model, and bound norms of all iterates"
    )

    lam: Annotated[float, Meta(ge=0, description="pull λ of personal models to the server's")] = 1.0
    lr: Annotated[Rate, Meta(description="step size of personal models")] = 0.01
    inner: Annotated[int, Meta(ge=1, description="steps of a personal model a round")] = 5

    def sample_gradients(self, d: Array) -> Array:
        return super().sample_gradients(d) + count_gradients(d, self.inner, 0, self.batch_size)

    def local_steps(self, d: Array) -> Array | None:
        return None  # the personal model takes all of its steps

    def init_client(self, f: Local) -> Any:
        return Client(super().init_client(f).w, theta=f.initial())

    def update(self, f: Local, client: Any, x: Array, k: int, most: Array | None = None) -> tuple[Any, Array]:
        """Train the local model, which is uploaded, and the personal model."""
        client, w = super().update(f, client, x, k, most)
        return client._replace(theta=self.train_personal(f, client.theta, x)), w

    def train_personal(self, f: Local, theta: Array, x: Array) -> Array:
        """Return the personal models after ``inner`` steps near x: (c, n)."""
        theta = f.point(theta, self.optimizer.spans and self.inner, self.batch_size, vectors=2)
        memory = None
        for j, batch, has in f.steps(self.inner, 0, self.batch_size):
            g = batch.grad(theta) + self.lam * (theta - x)
            theta, memory = self.optimizer.step(theta, g, rate_at(self.lr, f, j, self.inner) * has, memory)
        return f.array(theta)

    def personal_models(self, f: Local, client: Any) -> Array:
        return client.theta

    def newcomer_models(self, f: Local, x: Array) -> Array:
        return self.train_personal(f, f.xp.tile(x, (len(f), 1)), x)
