"""Malenia SGD, the method of A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization
methods under a fixed computation model", arXiv:2305.12387 (2023)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, StepSize, minibatch, passes
from mpifed.core.promises import Keeps
from mpifed.core.typing import Count
from mpifed.federation.traits import Look, Need, Refused, Takes, Upload


class Client(NamedTuple):
    z: Array  # (c, n) mean of the gradients at the last model
    sent: Array  # (c, 1) how many these are
    k: Array  # (c, 1) the round of that model


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ


class Malenia(Algorithm, tag="malenia"):
    """A gradient step as soon as every client has sent a gradient at the newest model; fast ones send more meanwhile.

    x⁺ = x − γ (1/m) Σ_i z_i, where z_i is the mean of the B_i gradients of client i at x, and the step waits until
    m/Σ(1/B_i) >= S/m. A client begins anew from x as soon as it has sent one, and sends the mean of those so far.
    One that still worked on an older model finishes it in vain, and begins anew; with ``stop`` all clients drop their
    work at every step. A round is a step. With full gradients it is gradient descent that waits for the slowest client.
    By default γ = 1/L with L = max r_i.
    Source: the method, and γ for exact gradients, from memory.
    """

    title = "Malenia"
    look = Look("blue", 3, 5)
    # Means that the server adds up are kept where clients live, and which of them are new follows from arrivals.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Refused("that of arXiv:2305.12387 is about gradients that are drawn")

    gamma: StepSize = None
    S: Annotated[Count | None, Meta(description="gradients at the newest model for a step (default: m)")] = None
    stop: Annotated[bool, Meta(description="at every step all clients drop their work and begin anew")] = False
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (Need("lipschitz", unless=("gamma",)),)
    takes = Takes.ALL
    upload = Upload(kind="gradient", kept="z")
    asynchronous = True

    def work(self, d: Array) -> Array:
        return passes(d, 1, 0, self.batch_size)

    def join(self, f: Local) -> Client:
        return Client(z=f.zeros(), sent=f.zeros(1), k=f.zeros(1))

    def start(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=self.gamma or float(1 / fed.max(self.smoothness)))

    def round(self, fed: Federation, server: Server) -> Server:
        if self.stop:
            fed.drop()
        g = server.x
        B = np.zeros(fed.m)
        while not B.all() or fed.m / (1 / B).sum() < (self.S or fed.m) / fed.m:
            fed.send(self.gradient, server.x, fed.round, to=fed.free)
            arrived = fed.arrivals()
            B[fed.mask(arrived)] += fed.staleness == 0
            g = fed.mean(of=arrived, last="z")
        return server._replace(x=server.x - server.gamma * g)

    def gradient(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """The mean of the client's gradients at the model of round k, with a new one."""
        batch = minibatch(f, self.batch_size)
        before = f.xp.where(client.k == k, client.sent, f.zeros(1))
        z = (before * client.z + batch.grad(x)) / (before + 1)
        return Client(z, before + 1, f.zeros(1) + k), z
