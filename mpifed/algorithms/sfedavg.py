"""SFedAvg, Algorithm 3 of S. Zhou, G. Y. Li, "Exact penalty method for federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import (
    NOISES,
    LaplaceNoise,
    LocalIterations,
    NoisyAlgorithm,
    PlotStyle,
    SqrtSamples,
    Step,
    UnprovenNoise,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload

MU0 = 0.05
ALPHA = 1.001
C = 1e-8  # (39): the constants of FedEPM set the noise of all three methods


class Client(NamedTuple):
    w: Array  # (c, n) local models
    z: Array  # (c, n) last upload
    ratio: Array  # (c,) log10 of signal over noise of the last upload


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far
    uploads: Array  # (m,) noisy uploads so far


class SFedAvg(NoisyAlgorithm, tag="sfedavg"):
    """Selected clients take k0 gradient steps from the server's model and upload with noise.

    w_i ← w_i − γ_i ∇f_i(w_i), from w_i = x;  z_i = w_i + noise;  x⁺ = mean of z_i over the clients that trained, or, as
    (34) prints it, x = mean of the last z_i of the new selection before it trains.  Source: (34), (35), (37)–(39).
    """

    title = "SFedAvg"
    plot_style = PlotStyle("black", 7, 1)
    # Noise comes from f.rng, which follows from the seed: it repeats, and guarantees no privacy.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("the FedEPM paper states none for it")

    k0: LocalIterations = 12
    step: Annotated[Step, to_tune("step size γ_i")] = SqrtSamples()
    epsilon: Annotated[float, Meta(gt=0, description="ε that the noise of one upload names")] = 0.1
    noise: UnprovenNoise = "released"
    average: Annotated[Literal["trained", "new"], Meta(description="over the old or the new selection")] = "trained"
    upload = Upload(server_copy="z", single={"average": "new"})
    refused: ClassVar[dict[str, str]] = {"optimizer": "the noise is calibrated for plain gradient steps"}

    def mechanism(self) -> LaplaceNoise:
        return NOISES[self.noise](self.epsilon, MU0)

    def sample_gradients(self, d: Array) -> Array:
        return (self.k0 + self.mechanism().gradients) * d

    def init_client(self, f: Local) -> Client:
        return Client(w=f.initial(), z=f.initial(), ratio=f.xp.full(len(f), math.inf))

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.mean(self.first), k=0, uploads=np.zeros(fed.m))

    def round(self, fed: Federation, server: Server) -> Server:
        selected, x = fed.select(server.x), server.x
        if self.average == "new":
            x = fed.mean(self.again, to=selected, charge=False)  # (34): the server has them
        trained = fed.mean(self.update, x, server.k, to=selected)
        uploads = server.uploads + fed.mask(selected)
        return Server(trained if self.average == "trained" else x, server.k + self.k0, uploads)

    def again(self, f: Local, client: Client) -> tuple[Client, Array]:
        return client, client.z

    def update(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """Apply (35) or (36) k0 times, and (37)."""
        noise = self.mechanism()
        w = x
        before = client.w
        for j in range(self.k0):
            before = w if j else before
            w = self.iterate(f, w, x, self.step.gamma(k + j, self.k0, f.samples))
        mu = MU0 * (1 + C * noise.squared_distance(before - x)) * ALPHA ** (k + self.k0)
        rate = noise.rate(1 / mu, self.rate(f, k))
        norm = 2 * f.xp.sum(f.xp.abs(f.grad(x)), axis=1) if noise.gradients else f.xp.zeros(len(f))
        z, ratio = noise.upload(f, w, norm * rate)  # (37), (39)
        return Client(w, z, ratio), z

    def rate(self, f: Local, k: int) -> Array:
        """Return γ_k of each client (c,), or of all (1,)."""
        gamma = self.step.gamma(k, self.k0, f.samples)
        return f.xp.reshape(f.xp.asarray(gamma), (-1,))

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        return w - gamma * f.grad(w)  # (35)
