"""FedEPM: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", Algorithm 2."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.noise import Budget, accounting, laplace, log_ratio
from mpifed.algorithms.prox import elastic_net_mean, soft
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation

Positive = Annotated[float, Meta(gt=0)]


class Client(NamedTuple):
    w: Array  # (c, n) local models
    z: Array  # (c, n) last uploads
    reach: Array  # (c,) how far one sample can move w_i, in the 1-norm (noise = clipped)
    ratio: Array  # (c,) log10 of signal over noise of the last upload


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far
    eta: float  # η
    lam: float  # λ
    uploads: Array  # (m,) noisy uploads so far


class FedEPM(Algorithm, tag="fedepm"):
    """Chosen clients take k0 proximal steps with one gradient and upload with noise; the server solves an elastic net.

    x = argmin Σ_i λ‖x − z_i‖₁ + (η/2)‖x − z_i‖²;  w_i ← x + soft(μ_i(w_i − x) − g_i, λ)/(η + μ_i), g_i = ∇f_i(x),
    μ_i = mu0 (1 + c‖w_i − x‖²) alpha^(k+1), over d_i with step_scale "samples";  z_i = w_i + Laplace noise.
    Noise "released" has scale 2‖g_i‖₁/(ε μ_i) as published; with steps μ_i/d_i that is d_i times too little for the ε it
    names; "matched" is right for the step taken. Both take 2‖g_i‖₁ for the sensitivity, which depends on the data: no
    guarantee. "clipped" has one: samples' gradients are clipped to 1-norm ``clip``, c is 0, and the scale is the
    sensitivity of w_i over epsilon.  Source: fedepm (19)–(22), (39) with the errata to (15) and to the steps.
    """

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 12
    lam: Annotated[Positive | None, Meta(description="λ (default: η/2)")] = None
    eta: Annotated[Positive | None, Meta(description="η (default: (0.02 m + 1)(ρ + 0.1)·1e-5)")] = None
    mu0: Annotated[float, Meta(gt=0, description="μ_0")] = 0.05
    alpha: Annotated[float, Meta(ge=1, description="growth α of μ_i")] = 1.001
    c: Annotated[float, Meta(ge=0, description="weight c of ‖w_i − x‖² in μ_i")] = 1e-8
    step_scale: Annotated[Literal["samples", "one"], Meta(description="μ_i over d_i, or μ_i as printed")] = "samples"
    epsilon: Annotated[float, Meta(gt=0, description="privacy ε of one upload")] = 0.1
    noise: Annotated[
        Literal["released", "matched", "clipped", "none"], Meta(description="Laplace noise on uploads")
    ] = "released"
    clip: Annotated[float, Meta(gt=0, description="bound of samples' gradients, 1-norm (noise = clipped)")] = 1.0
    delta: Annotated[float, Meta(gt=0, lt=1, description="δ at which the composed budget is told")] = 1e-5

    extremes: ClassVar[tuple[str, ...]] = ("snr",)

    def needs(self) -> tuple[str, ...]:
        return ("clipped_grad",) if self.noise == "clipped" else ()

    def work(self, d: Array) -> Array:
        return d

    def opening(self) -> str:
        return "" if self.noise == "clipped" else "update"

    def join(self, f: Local) -> Client:
        if self.noise == "clipped":
            accounting()  # refuses a missing library before round one
        return Client(w=f.initial(), z=f.zeros(), reach=np.zeros(len(f)), ratio=np.full(len(f), np.inf))

    def start(self, fed: Federation) -> Server:
        eta = self.eta or (0.02 * fed.m + 1) * (fed.selected / fed.m + 0.1) * 1e-5
        lam = self.lam or eta / 2
        return Server(fed.solve(self.first, eta, lam, last="z", then=self.model), 0, eta, lam, np.zeros(fed.m))

    def round(self, fed: Federation, server: Server) -> Server:
        chosen = fed.select(server.x)
        rows = slice(None) if chosen is None else chosen
        uploads = server.uploads.copy()
        uploads[rows] += 1
        x = fed.solve(self.update, server.x, server.k, server.eta, server.lam, to=chosen, last="z", then=self.model)
        return server._replace(x=x, k=server.k + self.k0, uploads=uploads)

    def model(self, Z: Array, *args: Any) -> Array:
        """(19) from some columns of all clients' last uploads, (m, w) -> (w,); η and λ end the arguments."""
        eta, lam = args[-2:]
        return elastic_net_mean(Z, lam, eta)

    def first(self, f: Local, client: Client, eta: float, lam: float) -> tuple[Client, Array]:
        """z_i⁰ = w_i⁰ + noise of standard deviation 1/mu0."""
        noise = f.zeros() if self.noise == "none" else laplace(f, np.full(len(f), 1 / self.mu0 / np.sqrt(2)))
        z = client.w + noise
        return client._replace(z=z), z

    def update(self, f: Local, client: Client, x: Array, k: int, eta: float, lam: float) -> tuple[Client, Array]:
        """(20), k0 times, and (21)."""
        clipped = self.noise == "clipped"
        g = f.clipped_grad(x, self.clip) if clipped else f.grad(x)
        w, reach, one = client.w, client.reach, np.ones(len(f))
        mu, over = self.mu0 * one, f.d if self.step_scale == "samples" else one
        for j in range(self.k0):
            away = w - x
            mu = self.mu0 * (one if clipped else 1 + self.c * np.vecdot(away, away)) * self.alpha ** (k + j + 1)
            step = (mu / over)[:, None].astype(x.dtype)
            w = x + soft(step * away - g, lam) / (eta + step)
            if clipped:
                reach = (step[:, 0] * reach + 2 * self.clip / f.d) / (eta + step[:, 0])
        noise = laplace(f, self.sensitivity(g, mu, over, reach) / self.epsilon)
        z = w + noise  # (21)
        return Client(w, z, reach, log_ratio(w, noise)), z

    def sensitivity(self, g: Array, mu: Array, over: Array, reach: Array) -> Array:
        """How far one sample moves w_i in the 1-norm (c,), or what stands for it: (39)."""
        if self.noise in ("none", "clipped"):
            return reach if self.noise == "clipped" else 0 * reach
        stand_in = 2 * np.abs(g).sum(axis=1) / mu
        return over * stand_in if self.noise == "matched" else stand_in

    def extreme(self, f: Local, client: Client) -> tuple[Array, ...]:
        return (-client.ratio,)

    def report(self, server: Server, watched: dict[str, float], m: int) -> dict[str, Any]:
        if self.noise == "none":
            return {}
        budget = Budget(self.epsilon, int(server.uploads.max(initial=0)))
        honest = {"epsilon_accounted": budget.accounted(self.delta)} if self.noise == "clipped" else {}
        return {"snr": -watched["snr"], "epsilon": budget.basic()} | honest
