"""Malenia SGD, the method of A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization
methods under a fixed computation model", arXiv:2305.12387 (2023)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import BatchSize, PlotStyle, PositiveInt, StepSize, count_gradients, minibatch, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, Participation, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    z: Array  # (c, n) mean of the gradients at the last model
    sent: Array  # (c, 1) number of these gradients
    k: Array  # (c, 1) the round of that model


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ


class Malenia(Algorithm, tag="malenia"):
    """A gradient step as soon as every client has sent a gradient at the newest model; fast ones send more meanwhile.

    x⁺ = x − γ (1/m) Σ_i z_i, with z_i the mean of the B_i gradients of client i at x; the step waits until
    m/Σ(1/B_i) >= S/m. A client that has sent a gradient begins anew from x, and sends the mean of its gradients at x.
    One that still works on an older model finishes it in vain, and begins anew; with ``stop`` all clients drop their
    work at every step. A round is a step. With full gradients it is gradient descent that waits for the slowest client.
    By default γ = 1/L with L = max r_i.
    Source: the method, and γ for exact gradients, from memory.
    """

    title = "Malenia"
    plot_style = PlotStyle("blue", 3, 5)
    # Clients keep the means that the server adds up; arrivals decide which are new.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2305.12387 is about gradients that are drawn")

    gamma: StepSize = None
    S: Annotated[PositiveInt | None, Meta(description="gradients at the newest model for a step (default: m)")] = None
    stop: Annotated[bool, Meta(description="at every step all clients drop their work and begin anew")] = False
    batch_size: BatchSize = 0

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    participation = Participation.ALL
    upload = Upload(content="gradient", last_upload="z")
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def init_client(self, f: Local) -> Client:
        return Client(z=f.zeros(), sent=f.zeros(1), k=f.zeros(1))

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed))

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
        return server._replace(x=server.x - rate_at(self.gamma or server.gamma, fed) * g)

    def gradient(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """Add a new gradient to the client's mean at the model of round k, and upload the mean."""
        batch = minibatch(f, self.batch_size)
        before = f.xp.where(client.k == k, client.sent, f.zeros(1))
        z = (before * client.z + batch.grad(x)) / (before + 1)
        return Client(z, before + 1, f.zeros(1) + k), z
