"""FedEPM, Algorithm 2 of S. Zhou, G. Y. Li, "Exact penalty method for federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import (
    NOISES,
    LaplaceNoise,
    LocalIterations,
    NoiseChoice,
    NoiseSeed,
    NoisyAlgorithm,
    PlotStyle,
    PositiveFloat,
    Theorem,
    elastic_net_mean,
    soft,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, Requirement, Supports, Upload
from mpifed.theory.fedepm import penalty_weights


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


class ExactPenalty(NoisyAlgorithm):
    """Options of FedEPM and of its form on graphs."""

    k0: LocalIterations = 12
    lam: Annotated[PositiveFloat | None, Meta(description="λ (default: η/2)")] = None
    eta: Annotated[PositiveFloat | None, Meta(description="η (default: (0.02 m + 1)(ρ + 0.1)·1e-5)")] = None
    mu0: Annotated[float, to_tune("μ_0", gt=0)] = 0.05
    alpha: Annotated[float, Meta(ge=1, description="growth α of μ_i")] = 1.001
    c: Annotated[float, Meta(ge=0, description="weight c of ‖w_i − x‖² in μ_i (noise = clipped: 0)")] = 1e-8
    step_scale: Annotated[Literal["samples", "one"], Meta(description="μ_i over d_i, or μ_i as printed")] = "samples"
    epsilon: Annotated[float, Meta(gt=0, description="ε that the noise of one upload names")] = 0.1
    noise: NoiseChoice = "released"
    noise_seed: NoiseSeed = None
    clip: Annotated[float, Meta(gt=0, description="bound of samples' gradients, 1-norm (noise = clipped)")] = 1.0
    delta: Annotated[float, Meta(gt=0, lt=1, description="δ at which the composed budget is reported")] = 1e-5

    requires = (Requirement("clipped_grad", when={"noise": "clipped"}),)

    def mechanism(self) -> LaplaceNoise:
        return NOISES[self.noise](self.epsilon, self.mu0, self.clip, self.delta, self.noise_seed)

    def first_reach(self, f: Local) -> Array:
        """Return the first reach, 0 for each client: (c,); raise UserError where models are too long for the noise."""
        self.mechanism().verify_size(f.n)
        return f.xp.zeros(len(f))


class FedEPM(ExactPenalty, tag="fedepm"):
    """Selected clients take k0 proximal steps with one gradient and upload noisily; the server solves an elastic net.

    x = argmin Σ_i λ‖x − z_i‖₁ + (η/2)‖x − z_i‖²;  w_i ← x + soft(μ_i(w_i − x) − g_i, λ)/(η + μ_i), g_i = ∇f_i(x),
    μ_i = mu0 (1 + c‖w_i − x‖²) alpha^(k+1), or that over d_i;  z_i = w_i + noise.  Source: (19)–(22), (39); errata.
    """

    title = "FedEPM"
    plot_style = PlotStyle("purple", 6)
    theorem = Theorem("mpifed.theory.fedepm:certificate")

    upload = Upload(last_upload="z", server_copy="z", single={})

    @property
    def supports(self) -> Supports:
        # η and λ follow from numbers of clients, μ_i with clipped noise from k and d_i, the first upload from no data:
        # only z_i depends on samples. Steps of the grid follow from n and d_i, which are public.
        return self.mechanism().supports

    def init_client(self, f: Local) -> Client:
        return Client(w=f.initial(), z=f.zeros(), reach=self.first_reach(f), ratio=f.xp.full(len(f), math.inf))

    def init_server(self, fed: Federation) -> Server:
        lam, eta = penalty_weights(self, fed.m, fed.clients_per_round)
        return Server(fed.solve(self.first, eta, lam, last="z", then=self.model), 0, eta, lam, np.zeros(fed.m))

    def round(self, fed: Federation, server: Server) -> Server:
        x = fed.solve(self.update, *server[:4], to=fed.select(server.x), last="z", then=self.model)
        return server._replace(x=x, k=server.k + self.k0, uploads=server.uploads + fed.mask(fed.selected))

    def model(self, Z: Array, *args: Any) -> Array:
        return elastic_net_mean(Z, lam=args[-1], eta=args[-2])  # (19) for w columns of all last uploads: (m, w) -> (w,)

    def update(self, f: Local, client: Client, x: Array, k: int, eta: float, lam: float) -> tuple[Client, Array]:
        """Apply (20) k0 times, and (21)."""
        noise = self.mechanism()
        w = client.w
        reach = client.reach
        g = noise.gradient(f, x)
        over = f.d if self.step_scale == "samples" else f.xp.ones(len(f))
        for j in range(self.k0):
            difference = w - x
            mu = self.mu0 * (1 + self.c * noise.squared_distance(difference)) * self.alpha ** (k + j + 1)
            step = f.xp.astype((mu / over)[:, None], x.dtype)
            w = x + soft(step * difference - g, lam) / (eta + step)  # (20)
            reach = noise.grow_reach(reach, step[:, 0], eta, f.d)
        z, ratio = noise.upload(
            f, w, noise.rate(1, over) * (2 * f.xp.sum(f.xp.abs(g), axis=1) / mu), reach
        )  # (21), (39)
        return Client(w, z, reach, ratio), z
