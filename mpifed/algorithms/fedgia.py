"""FedGiA: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", Algorithm 1."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation
from mpifed.problems.base import Solve


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables


class Server(NamedTuple):
    x: Array  # (n,) model
    sigma: float  # penalty


class FedGiA(Algorithm, tag="fedgia"):
    """Chosen clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

    x⁺ = (1/m) Σ z_i;  chosen: x_i ← x − (H_i/m + σI)⁻¹(ḡ_i + π_i), π_i ← π_i + σ(x_i − x), z_i = x_i + π_i/σ;
    others: x_i = x, π_i = −ḡ_i;  ḡ_i = ∇f_i(x)/m,  σ = t·max r_i/m.  Source: fedgia (11)–(17), Tables II and III.
    """

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 10
    H: Annotated[
        Literal["diagonal", "gram", "zero"], Meta(description="H_i = r_i I, the problem's Gram matrix, or 0")
    ] = "diagonal"
    t: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="σ = t·r/m (default: Table III, by problem)")
    ] = None

    everyone: ClassVar[bool] = True

    def needs(self) -> tuple[str, ...]:
        return ("lipschitz", "majorizer_inverse") if self.H == "gram" else ("lipschitz",)

    def opening(self) -> str:
        return "update"

    def work(self, d: Array) -> Array:
        return d

    def join(self, f: Local) -> Client:
        return Client(pi=f.zeros())

    def start(self, fed: Federation) -> Server:
        sigma = self.scale(fed) * float(fed.max(self.bound)) / fed.m
        return Server(x=fed.initial(), sigma=sigma)

    def round(self, fed: Federation, server: Server) -> Server:
        chosen = fed.select(server.x)
        x = fed.mean(self.update, server.x, server.sigma, each=fed.mask(chosen))
        return server._replace(x=x)

    def update(self, f: Local, client: Client, x: Array, sigma: float, chosen: Array) -> tuple[Client, Array]:
        """(12)–(17): with the gradient at x, k0 steps of the chosen, one of the others."""
        g = f.grad(x) / f.m
        pi, z = -g, x - g / sigma  # (16), (17)
        i = np.flatnonzero(chosen)
        if len(i):
            gi, pii, inverse = g[i], client.pi[i], self.inverse(f.take(i), sigma)
            for _ in range(self.k0):
                step = -inverse(gi + pii)  # (12): x_i − x
                pii = pii + sigma * step  # (13)
            pi[i], z[i] = pii, x + step + pii / sigma  # (14)
        return client._replace(pi=pi), z

    def bound(self, f: Local, client: Client) -> tuple[Client, Array]:
        return client, f.lipschitz()

    def inverse(self, f: Local, sigma: float) -> Solve:
        """v -> (H_i/m + σI)⁻¹ v."""
        if self.H == "gram":
            return f.majorizer_inverse(1 / f.m, sigma)
        h = (f.lipschitz() / f.m if self.H == "diagonal" else np.zeros(len(f)))[:, None]
        factor = (1 / (h + sigma)).astype(f.block.b.dtype)
        return lambda V: factor * V

    def scale(self, fed: Federation) -> float:
        """t of Table III."""
        if self.t is not None:
            return self.t
        return max(0.025, 4 * math.log(fed.samples) / fed.n) if fed.problem.logistic_loss else 0.15
