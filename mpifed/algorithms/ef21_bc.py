"""EF21-BC, Algorithm 5 of I. Fatkhullin, I. Sokolov, E. Gorbunov, Z. Li, P. Richtárik, "EF21 with bells & whistles:
Six algorithmic extensions of modern error feedback", arXiv:2110.03294 (2021)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.ef21 import ErrorFeedback
from mpifed.algorithms.parts import PlotStyle, rate_at
from mpifed.compressors import TopK
from mpifed.extend import Array, Compressor, Federation, Participation, Supports, Unsupported, Upload

OWN = "it compresses them itself: algorithm.{key} says how"


class Server(NamedTuple):
    x: Array  # (n,) model
    w: Array  # (n,) mean of all g_i
    g: Array  # (n,) clients' copy of w
    gamma: float  # step size γ


class EF21BC(ErrorFeedback, tag="ef21-bc"):
    """EF21 both ways: the server too sends compressed what clients lack; all clients take part.

    x⁺ = x − γ g;  g_i ← g_i + C(∇f_i(x⁺) − g_i);  w = mean g_i;  g ← g + b, b = D(w − g), from g = w at the start.
    Clients compute x⁺ from the b of the round before, so a download is charged for b. D is contractive as
    C is. By default γ = 1/(L + L̃√(16 B + 2A(1 + 8B))), L, L̃ as in ef21, A = β/θ of C, B that of D: derived as the
    theorem of EF21 is, with ‖C(v)‖² <= 4‖v‖² (mpifed's choice).  Source: Algorithm 5.
    """

    title = "EF21-BC"
    plot_style = PlotStyle("purple", 5, 5)
    # Estimates at server and clients are in the checkpoint; D draws from fed.rng.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:2110.03294 bounds the gradient at a random one of all iterates, which no model of a run is"
    )

    down: Annotated[Compressor, Meta(description="contractive compressor D of downloads")] = TopK(k="0.1n")

    participation = Participation.ALL
    upload = Upload(content="compressed", exact={"up": OWN.format(key="compressor"), "down": OWN.format(key="down")})

    def verify(self, selected: int) -> None:
        super().verify(selected)
        self.down.verify()

    def message_size(self, n: int) -> tuple[float, float]:
        return self.down.numbers(n), super().message_size(n)[1]

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        w = fed.mean(self.first, x)
        return Server(x, w, g=w, gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - rate_at(self.gamma or server.gamma, fed) * server.g
        c = fed.sum(self.refine, x, bits=self.bits(fed), down=self.down.bits(fed.n, fed.dtype.itemsize))
        w = server.w + c / fed.m
        scale, _ = self.down.contraction(fed.n)
        b = scale * self.down.compress((w - server.g)[None], lambda: [fed.rng])[0]
        return server._replace(x=x, w=w, g=server.g + b)

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        up, down = (error_bound(C, fed.n) for C in (self.compressor, self.down))
        return float(1 / (np.mean(r) + np.sqrt(np.mean(r * r) * (16 * down + 2 * up * (1 + 8 * down)))))


def error_bound(C: Compressor, n: int) -> float:
    """Return β/θ of a contractive compressor where all clients take part."""
    _, delta = C.contraction(n)
    left = np.sqrt(1 - delta)
    return float((left / (1 - left)) ** 2)
