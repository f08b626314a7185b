"""FedADMM for networks, Algorithm 1 of Y. Gong, Y. Li, N. M. Freris, "FedADMM: A robust federated deep learning
framework with adaptivity to system heterogeneity", arXiv:2204.03529 (2022)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    SGD,
    BatchSize,
    LastBatch,
    LocalOptimizer,
    PlotStyle,
    PositiveNumber,
    Rate,
    Server,
    count_gradients,
    rate_at,
    to_tune,
)
from mpifed.extend import Algorithm, Array, Federation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    z: Array  # (c, n) last upload


class FedADMMDeep(Algorithm, tag="fedadmm-deep"):
    """Clients train on their augmented Lagrangian by SGD; the server averages all last uploads.

    θ_i ← H epochs on f_i(θ) + ⟨π_i, θ − w⟩ + (ρ/2)‖θ − w‖² from w;  π_i ← π_i + ρ(θ_i − w);  z_i = θ_i + π_i/ρ;
    w⁺ = mean of z_i over all m.  Source: Algorithm 1, as compared in flame, section V; errata.
    """

    title = "FedADMM (deep)"
    plot_style = PlotStyle("vermilion", 6, 1)
    # Duals and last uploads are kept, optimisers begin anew in every round.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("its local problems are solved by epochs of SGD, to an accuracy that nothing controls")

    rho: Annotated[float, Meta(gt=0, description="penalty ρ")] = 0.01
    lr: Annotated[Rate, to_tune("step size of the local epochs")] = 0.01
    epochs: Annotated[PositiveNumber, Meta(description="local epochs H, such as 2.5")] = 5
    optimizer: LocalOptimizer = SGD()
    batch_size: BatchSize = 100
    last_batch: LastBatch = "keep"
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay in every gradient")] = 0.0

    upload = Upload(last_upload="z")
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 0, self.epochs, self.batch_size, self.last_batch)

    def init_client(self, f: Local) -> Client:
        return Client(pi=f.zeros(), z=f.initial())

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, to=fed.select(server.x))
        return Server(x=fed.mean(of=fed.arrivals(), last="z"))

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Run local epochs, step the dual variables, and upload z_i."""
        theta = self.descend(f, client, w)
        pi = client.pi + self.rho * (theta - w)
        z = theta + pi / self.rho
        return Client(pi, z), z

    def descend(self, f: Local, client: Client, w: Array) -> Array:
        """Return the local models after all epochs: (c, n)."""
        w = f.xp.broadcast_to(w, client.pi.shape)
        theta = f.point(w, self.optimizer.spans and 1, self.batch_size, vectors=2, epochs=self.epochs)
        memory = None
        for j, batch, has in f.steps(0, self.epochs, self.batch_size, None, self.last_batch):
            g = batch.grad(theta) + client.pi + self.rho * (theta - w) + self.weight_decay * theta
            theta, memory = self.optimizer.step(theta, g, rate_at(self.lr, f, j, self.epochs) * has, memory)
        return f.array(theta)
