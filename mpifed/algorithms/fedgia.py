"""FedGiA, Algorithm 1 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Federation, Local, Positive, tuned
from mpifed.algorithms.bases.inexact_admm import InexactADMM, Penalty
from mpifed.algorithms.parts.curvature import Path, begun
from mpifed.algorithms.parts.metric import NEEDS, Metric, inverse
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Takes, Theorem


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    w: Array  # (c, n) local models x_i where the Lagrangian is recorded, else (c, 0)


class Server(NamedTuple):
    x: Array  # (n,) model
    sigma: float  # penalty

    def after(self, mean: Any) -> "Server":
        """The state after a round whose uploads have this mean."""
        return self._replace(x=mean)


class OneGradientADMM(InexactADMM):
    """The options and the start of FedGiA and of its asynchronous form."""

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 10
    H: Metric = "diagonal"
    t: Annotated[Positive | None, tuned("σ = t·r/m (default: Table III, by problem)")] = None
    adaptive: Annotated[bool, Meta(description="only the first σ is t·r/m, and σ follows the curvature of f")] = False

    requires = NEEDS
    common = True

    def traffic(self, n: int) -> tuple[float, float]:
        return n + self.adaptive, n + self.adaptive

    def join(self, f: Local) -> Client:
        return Client(self.duals(f), f.initial() if self.lagrangian else f.zeros(0))

    def start(self, fed: Federation) -> Server | Path:
        r = float(fed.max(self.smoothness))
        sigma = self.scale(fed.problem.logistic_loss, fed.samples, fed.n) * r / fed.m
        x = self.joint(fed, fed.m * sigma)  # (11) at k = 0
        return begun(x, sigma, r / fed.m) if self.adaptive else Server(x, sigma)

    def report(self, server: Penalty, row: dict[str, float], m: int) -> dict[str, float]:
        return super().report(server, row, m) | ({"penalty": server.sigma} if self.adaptive else {})

    def scale(self, logistic: bool, samples: int, n: int) -> float:
        """t of Table III, by the loss of the problem."""
        return self.t or (max(0.025, 4 * math.log(samples) / n) if logistic else 0.15)


class FedGiA(OneGradientADMM, tag="fedgia"):
    """Selected clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

    x⁺ = (1/m) Σ z_i;  selected: x_i ← x − (H_i/m + σI)⁻¹(ḡ_i + π_i), π_i ← π_i + σ(x_i − x), z_i = x_i + π_i/σ;
    others: x_i = x, π_i = −ḡ_i;  ḡ_i = ∇f_i(x)/m,  σ = t·max r_i/m.  Source: (11)–(17), Tables II and III, but for
    ``adaptive``: σ then travels with x.
    """

    title = "FedGiA"
    look = Look("blue", 0)
    # Penalty and duals are state; σ comes from an exact maximum of r_i in round 0: no privacy.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Theorem("mpifed.theory.fedgia:certificate")

    takes = Takes.SELECTED_AND_ALL

    def round(self, fed: Federation, server: Server | Path) -> Server | Path:
        sigma = np.asarray(server.sigma, fed.dtype) if self.adaptive else server.sigma  # an array is charged
        mean = fed.mean(self.update, server.x, sigma, each=fed.mask(fed.select(server.x)))  # (11)
        return server.after(mean)

    def update(self, f: Local, client: Client, x: Array, sigma: float, selected: Array) -> tuple[Client, Any]:
        """(12)–(17): with the gradient at x, k0 steps of the selected clients, one of the others."""
        g = f.grad(x) / f.m
        sigma = float(sigma)
        (i,) = f.xp.nonzero(selected)
        pi, z = -g, x - g / sigma  # (16), (17)
        if i.shape[0]:
            gi = g[i]
            pii = client.pi[i]
            solve = inverse(f.take(i), self.H, sigma)
            for _ in range(self.k0):
                step = -solve(gi + pii)  # (12): x_i − x
                pii = pii + sigma * step  # (13)
            pi[i], z[i] = pii, x + step + pii / sigma  # (14)
        state = Client(pi, z - pi / sigma if self.lagrangian else client.w)
        if not self.adaptive:
            return state, z
        away = g + sigma * (z - x)
        return state, (z, f.xp.sqrt(f.xp.vecdot(away, away)))
