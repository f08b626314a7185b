"""FedEPM, Algorithm 2 of S. Zhou, G. Y. Li, "Exact penalty method for federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Federation, Local, Positive, tuned
from mpifed.algorithms.parts.elastic_nets import elastic_net_mean
from mpifed.algorithms.parts.noise import NOISES, Guaranteed, Noise, NoiseSeed, Noisy
from mpifed.core.promises import Keeps
from mpifed.core.soft_threshold import soft
from mpifed.federation.traits import Look, Need, Theorem, Upload
from mpifed.theory.fedepm import penalties


class Client(NamedTuple):
    w: Array  # (c, n) local models
    z: Array  # (c, n) last uploads
    reach: Array  # (c,) how far one sample can move w_i, in the 1-norm (noise = "clipped")
    ratio: Array  # (c,) log10 of signal over noise of the last upload


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far
    eta: float  # η
    lam: float  # λ
    uploads: Array  # (m,) noisy uploads so far


class ExactPenalty(Noisy):
    """The options of FedEPM and of its form on graphs."""

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 12
    lam: Annotated[Positive | None, Meta(description="λ (default: η/2)")] = None
    eta: Annotated[Positive | None, Meta(description="η (default: (0.02 m + 1)(ρ + 0.1)·1e-5)")] = None
    mu0: Annotated[float, tuned("μ_0", gt=0)] = 0.05
    alpha: Annotated[float, Meta(ge=1, description="growth α of μ_i")] = 1.001
    c: Annotated[float, Meta(ge=0, description="weight c of ‖w_i − x‖² in μ_i (noise = clipped: 0)")] = 1e-8
    step_scale: Annotated[Literal["samples", "one"], Meta(description="μ_i over d_i, or μ_i as printed")] = "samples"
    epsilon: Annotated[float, Meta(gt=0, description="ε that the noise of one upload names")] = 0.1
    noise: Guaranteed = "released"
    noise_seed: NoiseSeed = None
    clip: Annotated[float, Meta(gt=0, description="bound of samples' gradients, 1-norm (noise = clipped)")] = 1.0
    delta: Annotated[float, Meta(gt=0, lt=1, description="δ at which the composed budget is reported")] = 1e-5

    requires = (Need("clipped_grad", when={"noise": "clipped"}),)

    def mechanism(self) -> Noise:
        return NOISES[self.noise](self.epsilon, self.mu0, self.clip, self.delta, self.noise_seed)

    def unreached(self, f: Local) -> Array:
        """The reach (c,) before the first step, 0. UserError where models are too long for the noise."""
        self.mechanism().verify_size(f.n)
        return f.xp.zeros(len(f))


class FedEPM(ExactPenalty, tag="fedepm"):
    """Selected clients take k0 proximal steps with one gradient and upload noisily; the server solves an elastic net.

    x = argmin Σ_i λ‖x − z_i‖₁ + (η/2)‖x − z_i‖²;  w_i ← x + soft(μ_i(w_i − x) − g_i, λ)/(η + μ_i), g_i = ∇f_i(x),
    μ_i = mu0 (1 + c‖w_i − x‖²) alpha^(k+1), or that over d_i;  z_i = w_i + noise.  Source: (19)–(22), (39); errata.
    """

    title = "FedEPM"
    look = Look("purple", 6)
    theorem = Theorem("mpifed.theory.fedepm:certificate")

    upload = Upload(kept="z", known="z", single={})

    @property
    def keeps(self) -> Keeps:
        # η and λ follow from numbers of clients, the first upload from no data, μ_i with clipped noise from k and d_i:
        # of samples there is what is in z_i. Steps are sized for n and d_i, which are public.
        return self.mechanism().keeps

    def join(self, f: Local) -> Client:
        return Client(w=f.initial(), z=f.zeros(), reach=self.unreached(f), ratio=f.xp.full(len(f), math.inf))

    def start(self, fed: Federation) -> Server:
        lam, eta = penalties(self, fed.m, fed.cohort)
        return Server(fed.solve(self.first, eta, lam, last="z", then=self.model), 0, eta, lam, np.zeros(fed.m))

    def round(self, fed: Federation, server: Server) -> Server:
        x = fed.solve(self.update, *server[:4], to=fed.select(server.x), last="z", then=self.model)
        return server._replace(x=x, k=server.k + self.k0, uploads=server.uploads + fed.mask(fed.selected))

    def model(self, Z: Array, *args: Any) -> Array:
        return elastic_net_mean(Z, lam=args[-1], eta=args[-2])  # (19) for w columns of all last uploads: (m, w) -> (w,)

    def update(self, f: Local, client: Client, x: Array, k: int, eta: float, lam: float) -> tuple[Client, Array]:
        """(20), k0 times, and (21)."""
        noise = self.mechanism()
        w = client.w
        reach = client.reach
        g = noise.gradient(f, x)
        over = f.d if self.step_scale == "samples" else f.xp.ones(len(f))
        for j in range(self.k0):
            away = w - x
            mu = self.mu0 * (1 + self.c * noise.square(away)) * self.alpha ** (k + j + 1)
            step = f.xp.astype((mu / over)[:, None], x.dtype)
            w = x + soft(step * away - g, lam) / (eta + step)  # (20)
            reach = noise.grow(reach, step[:, 0], eta, f.d)
        z, ratio = noise.upload(
            f, w, noise.rate(1, over) * (2 * f.xp.sum(f.xp.abs(g), axis=1) / mu), reach
        )  # (21), (39)
        return Client(w, z, reach, ratio), z
