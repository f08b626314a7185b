"""SFedAvg: FedAvg with noise on its uploads, as compared in fedepm (Algorithm 3)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.noise import Budget, laplace, log_ratio
from mpifed.algorithms.step_sizes import SqrtSamples, Step
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation

MU0, ALPHA, C = 0.05, 1.001, 1e-8  # (39): the constants of FedEPM set the noise of all three methods


class Client(NamedTuple):
    w: Array  # (c, n) local models
    z: Array  # (c, n) last upload
    ratio: Array  # (c,) log10 of signal over noise of the last upload


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far
    uploads: Array  # (m,) noisy uploads so far


class SFedAvg(Algorithm, tag="sfedavg"):
    """Chosen clients take k0 gradient steps from the server's model and upload with Laplace noise.

    w_i ← w_i − γ_i ∇f_i(w_i), from w_i = x;  z_i = w_i + noise;  x⁺ = mean of z_i over the set that trained, or, as (34)
    prints it, x = mean of the last z_i of the new set before it trains. Noise "released": (39), scale
    2‖∇f_i(x)‖₁/(ε μ_i) with μ_i of FedEPM; "matched": 2 γ_i‖∇f_i(x)‖₁/ε, for the first step taken. Neither is a
    guarantee: 2‖g‖₁ is no bound of the sensitivity.  Source: fedepm (34), (35), (37)–(39).
    """

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 12
    step: Annotated[Step, Meta(description="step size γ_i")] = SqrtSamples()
    epsilon: Annotated[float, Meta(gt=0, description="privacy ε of one upload")] = 0.1
    noise: Annotated[Literal["released", "matched", "none"], Meta(description="Laplace noise on uploads")] = "released"
    average: Annotated[Literal["trained", "new"], Meta(description="over the set that trained, or the new set")] = (
        "trained"
    )

    extremes: ClassVar[tuple[str, ...]] = ("snr",)

    def work(self, d: Array) -> Array:
        """One gradient more for the noise."""
        return (self.k0 + (self.noise != "none")) * d

    def join(self, f: Local) -> Client:
        return Client(w=f.initial(), z=f.initial(), ratio=np.full(len(f), np.inf))

    def start(self, fed: Federation) -> Server:
        return Server(x=fed.mean(self.first), k=0, uploads=np.zeros(fed.m))

    def round(self, fed: Federation, server: Server) -> Server:
        chosen, x = fed.select(server.x), server.x
        if self.average == "new":
            x = fed.mean(self.again, to=chosen, charge=False)  # (34): the server has them
        trained = fed.mean(self.update, x, server.k, to=chosen)
        uploads = server.uploads + fed.mask(chosen)
        return Server(trained if self.average == "trained" else x, server.k + self.k0, uploads)

    def first(self, f: Local, client: Client) -> tuple[Client, Array]:
        """z_i⁰ = w_i⁰ + noise of standard deviation 1/μ_0."""
        noise = f.zeros() if self.noise == "none" else laplace(f, np.full(len(f), 1 / MU0 / np.sqrt(2)))
        return client._replace(z=client.w + noise), client.w + noise

    def again(self, f: Local, client: Client) -> tuple[Client, Array]:
        return client, client.z

    def update(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """(35) or (36), k0 times, and (37)."""
        w, before = x, client.w
        for j in range(self.k0):
            before = w if j else before
            w = self.iterate(f, w, x, self.step.gamma(k + j, self.k0, f.samples))
        scale = np.zeros(len(f))
        if self.noise != "none":
            mu = MU0 * (1 + C * np.vecdot(before - x, before - x)) * ALPHA ** (k + self.k0)
            rate = 1 / mu if self.noise == "released" else np.ravel(self.step.gamma(k, self.k0, f.samples))
            scale = 2 * np.abs(f.grad(x)).sum(axis=1) * rate / self.epsilon  # (39)
        noise = laplace(f, scale)
        return Client(w, w + noise, log_ratio(w, noise)), w + noise

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        """(35): one gradient step."""
        return w - gamma * f.grad(w)

    def extreme(self, f: Local, client: Client) -> tuple[Array, ...]:
        return (-client.ratio,)

    def report(self, server: Server, watched: dict[str, float], m: int) -> dict[str, Any]:
        if self.noise == "none":
            return {}
        return {"snr": -watched["snr"], "epsilon": Budget(self.epsilon, int(server.uploads.max(initial=0))).basic()}
