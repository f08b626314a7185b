"""Base of algorithms with a personal model for each client."""

from abc import abstractmethod
from typing import Annotated, Any

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import (
    Algorithm,
    Array,
    BatchSize,
    Federation,
    LastBatch,
    Local,
    Server,
    count_gradients,
    minibatch,
    row_norms,
    squared_norms,
    to_tune,
)
from mpifed.algorithms.parts.optimizers import SGD, LocalOptimizer
from mpifed.algorithms.parts.step_sizes import Rate, rate_at
from mpifed.core.typing import PositiveNumber
from mpifed.federation.method import ServerState
from mpifed.federation.traits import RecordValues, Sum


class Personal(Algorithm):
    """Base of algorithms whose clients keep a personal model ``theta``, which is never uploaded."""

    lam: Annotated[float, Meta(gt=0, description="pull λ of personal models to the centre")] = 5.0
    lr: Annotated[Rate, to_tune("step size of the local epochs")] = 0.01
    epochs: Annotated[PositiveNumber, Meta(description="local epochs H, such as 2.5")] = 5
    optimizer: LocalOptimizer = SGD()
    batch_size: BatchSize = 100
    last_batch: LastBatch = "keep"
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay in every gradient")] = 0.0
    envelope: Annotated[
        bool, Meta(description="record (1/m) Σ f_i(θ_i) + (λ/2)‖θ_i − w‖², the objective of personal models")
    ] = False

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 0, self.epochs, self.batch_size, self.last_batch)

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, to=fed.select(server.x))
        return Server(x=fed.mean(of=fed.arrivals(), last="z"))

    @abstractmethod
    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        """Update selected clients; return their new state and z_i."""

    def train(self, f: Local, theta: Array, centre: Array) -> Array:
        """Run H epochs on f_i(θ) + (λ/2)‖θ − centre‖² from θ, and return the new θ: (c, n)."""
        # the pull is part of the gradient that the optimiser gets, and so of its moments and of what is clipped
        theta = f.point(theta, self.optimizer.spans and 1, self.batch_size, vectors=2, epochs=self.epochs)
        memory = None
        for j, batch, has in f.steps(0, self.epochs, self.batch_size, None, self.last_batch):
            g = batch.grad(theta) + self.lam * (theta - centre) + self.weight_decay * theta
            theta, memory = self.optimizer.step(theta, g, rate_at(self.lr, f, j, self.epochs) * has, memory)
        return f.array(theta)

    def centre(self, client: Any, w: Array) -> Array:
        """Return the point that personal models are pulled to."""
        return w

    def score(self, f: Local, client: Any, w: Array, size: int) -> tuple[Any, Array]:
        """Return ‖gradient of the local objective at θ_i‖ on one mini-batch, the score of biased selection: (c,)."""
        batch = minibatch(f, size)
        g = batch.grad(client.theta) + self.lam * (client.theta - self.centre(client, w))
        return client, row_norms(g)

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        """Return f_i(θ_i) + (λ/2)‖θ_i − w‖², at least the Moreau envelope of f_i at w."""
        if not self.envelope:
            return {}
        return {"envelope": Sum(f.value(client.theta) + self.lam / 2 * squared_norms(client.theta - x))}

    def report(self, server: ServerState, row: dict[str, float], m: int) -> dict[str, float]:
        return row | ({"envelope": row["envelope"] / m} if self.envelope else {})

    def personal_models(self, f: Local, client: Any) -> Array:
        return client.theta

    def newcomer_models(self, f: Local, x: Array) -> Array:
        return self.train(f, f.xp.tile(x, (len(f), 1)), x)
