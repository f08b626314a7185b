"""EF21-HB, Algorithm 6 of I. Fatkhullin, I. Sokolov, E. Gorbunov, Z. Li, P. Richtárik, "EF21 with bells & whistles:
Six algorithmic extensions of modern error feedback", arXiv:2110.03294 (2021)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.ef21 import ErrorFeedback
from mpifed.algorithms.parts import COMPRESSED_UPLOAD, PlotStyle, rate_at
from mpifed.extend import Array, Federation, Supports, Unsupported


class Server(NamedTuple):
    x: Array  # (n,) model
    g: Array  # (n,) mean of all g_i
    v: Array  # (n,) direction
    gamma: float  # step size γ


class EF21HB(ErrorFeedback, tag="ef21-hb"):
    """EF21 with the momentum of the heavy ball at the server.

    x⁺ = x − γ v;  g_i ← g_i + C(∇f_i(x⁺) − g_i) of the selected clients;  v ← η v + mean g_i, from v = mean g_i.
    By default γ = (1 − η)/(L/(1 − η) + L̃√(1 − δ)/(1 − √(1 − δ))), L, L̃ and δ as in ef21, whose γ it is where η = 0: of
    the order of the paper's Corollary 1 (mpifed's choice). For z = x − γη/(1 − η) v of a round before, z⁺ = z − Γg with
    Γ = γ/(1 − η), and f falls over all rounds if LΓ + Γ²(L̃√(β/θ) + Lη/(1 − η))² <= 1. The authors' program has the γ of
    ef21, which is longer.  Source: Algorithm 6.
    """

    title = "EF21-HB"
    plot_style = PlotStyle("purple", 3, 6)
    # As ef21, with a direction of the server in its state.
    supports = Supports.REPEATED | Supports.DEVICES
    upload = COMPRESSED_UPLOAD
    theorem = Unsupported(
        "that of arXiv:2110.03294 bounds the gradient at a random one of all iterates, which no model of a run is"
    )

    eta: Annotated[float, Meta(ge=0, lt=1, description="momentum η")] = 0.5

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        g = fed.mean(self.first, x)
        return Server(x, g, v=g, gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - rate_at(self.gamma or server.gamma, fed) * server.v
        c = fed.sum(self.refine, x, to=fed.select(x), bits=self.bits(fed))
        g = server.g + c / fed.m
        return server._replace(x=x, g=g, v=self.eta * server.v + g)

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        left, slow = self.error_factor(fed), 1 - self.eta
        return float(slow / (np.mean(r) / slow + np.sqrt(np.mean(r * r)) * left / (1 - left)))
