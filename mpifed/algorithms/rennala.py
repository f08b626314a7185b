"""Rennala SGD, the method of A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization
methods under a fixed computation model", arXiv:2305.12387 (2023)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Client, Federation, Local, StepSize, passes
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Need, Refused, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ


class Rennala(Algorithm, tag="rennala"):
    """A gradient step with the first B gradients at the newest model, of which a fast client may send several.

    x⁺ = x − (γ/B) Σ ∇f_i(x) over the first B of them to arrive, or more where several arrive at once. A client begins
    anew from x as soon as it has sent one. One that still worked on an older model finishes it, its gradient is
    ignored, and it begins anew. With ``stop`` all clients drop their work at every step, and begin anew. A round is a
    step. Fast clients count for more, so with unlike f_i the model has their bias.
    By default γ = 1/L with L = max r_i.
    Source: the method, and γ for exact gradients, from memory.
    """

    title = "Rennala"
    look = Look("sky", 0, 5)
    # A gradient depends on the model that its client was sent, and which of them are used on arrivals.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Refused("that of arXiv:2305.12387 is about one f that all clients share")

    gamma: StepSize = None
    B: Annotated[int, Meta(ge=1, description="gradients at the newest model for a step")] = 1
    stop: Annotated[bool, Meta(description="at every step all clients drop their work and begin anew")] = False
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (Need("lipschitz", unless=("gamma",)),)
    upload = Upload(kind="gradient", exact={"up": "clients that drop their work would have compressed it already"})
    asynchronous = True

    def work(self, d: Array) -> Array:
        return passes(d, 1, 0, self.batch_size)

    def join(self, f: Local) -> Client:
        return Client()

    def start(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=self.gamma or float(1 / fed.max(self.smoothness)))

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
        return server._replace(x=server.x - server.gamma * total / count)

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """∇f_i at the model x that the client was sent, or that of a mini-batch."""
        _, batch, _ = next(f.steps(1, 0, self.batch_size))
        return client, batch.grad(x)
