"""FedPD, Algorithm 1 of X. Zhang, M. Hong, S. Dhople, W. Yin, Y. Liu, "FedPD: A federated learning framework with
optimal rates and adaptivity to non-IID data", arXiv:2005.11418 (2020)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.fedavg import Server
from mpifed.algorithms.parts import SGD, LocalIterations, LocalOptimizer, Log2, PlotStyle, Step, to_tune
from mpifed.extend import Algorithm, Array, Federation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables λ_i
    z: Array  # (c, n) last upload


class FedPD(Algorithm, tag="fedpd"):
    """Clients descend on their augmented Lagrangian from the global model and update their dual, k0 times a round.

    w_i ≈ argmin f_i(v) + ⟨λ_i, v − x⟩ + ‖v − x‖²/(2 eta) by ``inner`` gradient steps from x;
    λ_i ← λ_i + (w_i − x)/eta;  x⁺ = mean over all m of the last w_i + eta λ_i.
    Source: Algorithm 1 with oracle I, as compared in fedgia, section V.D (oracle choice I, option I); errata.
    """

    title = "FedPD"
    plot_style = PlotStyle("green", 2)
    # Duals and last uploads are state of clients, and step sizes follow from the server's k.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:2005.11418 asks for an accuracy of the local problems that a number of steps does not give"
    )

    k0: LocalIterations = 5
    eta: Annotated[float, Meta(gt=0, description="η, the inverse of the penalty")] = 1.0
    inner: Annotated[int, Meta(ge=1, description="gradient steps an iteration")] = 5
    step: Annotated[Step, to_tune("step size γ_k of the inner descent, k over the whole run")] = Log2()
    optimizer: LocalOptimizer = SGD()
    scale: Annotated[Literal["1", "1/m"], Meta(description="factor of ∇f_i")] = "1"

    upload = Upload(last_upload="z")

    def sample_gradients(self, d: Array) -> Array:
        return (1 + self.k0 * (self.inner - 1)) * d

    def init_client(self, f: Local) -> Client:
        return Client(pi=f.zeros(), z=f.initial())

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        x = fed.mean(self.update, server.x, server.k, to=fed.select(server.x), last="z")
        return Server(x=x, k=server.k + self.k0)

    def update(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """Run k0 iterations, each from the global model x, and upload z_i."""
        pi = client.pi
        x = f.point(x, self.optimizer.spans and 1 + self.k0 * (self.inner - 1), vectors=2)
        first = self.data_grad(f, x)
        for j in range(self.k0):
            gamma = self.step.gamma(k + j, self.k0, f.samples)
            w = x
            g = first
            memory = None
            for inner in range(self.inner):
                g = self.data_grad(f, w) if inner else first
                w, memory = self.optimizer.step(w, g + pi + (w - x) / self.eta, gamma, memory)
            pi = pi + (w - x) / self.eta
        pi = f.array(pi)
        z = f.array(w) + self.eta * pi
        return Client(pi=pi, z=z), z

    def data_grad(self, f: Local, w: Array) -> Array:
        return f.grad(w) if self.scale == "1" else f.grad(w) / f.m
