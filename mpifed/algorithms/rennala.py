"""Rennala SGD, the method of A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization
methods under a fixed computation model", arXiv:2305.12387 (2023)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import BatchSize, Client, PlotStyle, StepSize, count_gradients, minibatch, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, Requirement, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ


class ArrivingGradients(Algorithm):
    """Base of methods whose clients send ∇f_i or a mini-batch gradient; the server decides which to use."""

    batch_size: BatchSize = 0

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def init_client(self, f: Local) -> Client:
        return Client()

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return ∇f_i, or a mini-batch gradient, at the model x that the client received."""
        return client, minibatch(f, self.batch_size).grad(x)


class Rennala(ArrivingGradients, tag="rennala"):
    """A gradient step with the first B gradients at the newest model; a fast client may send several.

    x⁺ = x − (γ/B) Σ ∇f_i(x) over the first B of them to arrive, or more where several arrive at once. A client begins
    anew from x as soon as it has sent one. One that still worked on an older model finishes it, its gradient is
    ignored, and it begins anew. With ``stop`` all clients drop their work at every step, and begin anew. A round is a
    step. Fast clients count for more, so with unlike f_i the model has their bias.
    By default γ = 1/L with L = max r_i.
    Source: the method, and γ for exact gradients, from memory.
    """

    title = "Rennala"
    plot_style = PlotStyle("sky", 0, 5)
    # Gradients depend on the models that clients were sent; arrivals decide which are used.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2305.12387 is about one f that all clients share")

    gamma: StepSize = None
    B: Annotated[int, Meta(ge=1, description="gradients at the newest model for a step")] = 1
    stop: Annotated[bool, Meta(description="at every step all clients drop their work and begin anew")] = False

    upload = Upload(content="gradient", exact={"up": "clients that drop their work would have compressed it already"})

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed))

    def round(self, fed: Federation, server: Server) -> Server:
        if self.stop:
            fed.drop()
        total = 0 * server.x
        count = 0
        while count < self.B:
            fed.send(self.gradient, server.x, to=fed.select(server.x))
            arrived = fed.arrivals()
            new = fed.staleness == 0
            total = total + fed.sum(of=arrived, weights=new)
            count += int(new.sum())
        return server._replace(x=server.x - rate_at(self.gamma or server.gamma, fed) * total / count)
