"""EF21, Algorithm 2 of P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and
practically faster error feedback", arXiv:2106.05203 (2021)."""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta, field

from mpifed.algorithms.parts import COMPRESSED_UPLOAD, CompressedGradients, PlotStyle, rate_at
from mpifed.compressors import TopK
from mpifed.extend import Array, Compressor, Federation, Local, Supports, Unsupported


class Client(NamedTuple):
    g: Array  # (c, n) server's estimate of ∇f_i


class Server(NamedTuple):
    x: Array  # (n,) model
    g: Array  # (n,) mean of all g_i
    gamma: float  # step size γ


class ErrorFeedback(CompressedGradients):
    """Base of methods whose clients upload the server's error of their gradient, compressed by a contractive C.

    The field is ``begin`` because ``start`` is a method; in experiment files it is ``start``.
    """

    compressor: Annotated[Compressor, Meta(description="contractive compressor C of uploads")] = TopK(k="0.1n")
    begin: Annotated[
        Literal["compressed", "full"], Meta(description="g_i at the start: C(∇f_i(x⁰)) or ∇f_i(x⁰) in full")
    ] = field(default="compressed", name="start")

    biased = True

    def init_client(self, f: Local) -> Client:
        return Client(g=f.zeros())

    def first(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return the first g_i, compressed or in full."""
        g = f.grad(x)
        c = g if self.begin == "full" else self.contract(f, g)
        return Client(g=client.g + c), c

    def refine(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Add C(∇f_i(x) − g_i) to g_i, and upload it."""
        c = self.contract(f, self.gradient(f, x) - client.g)
        return Client(g=client.g + c), c

    def gradient(self, f: Local, x: Array) -> Array:
        """Return the gradients that g_i approximate: (c, n)."""
        return f.grad(x)

    def contract(self, f: Local, rows: Array) -> Array:
        """Apply C to rows (c, n); an unbiased C is divided by 1 + ω."""
        scale, _ = self.compressor.contraction(f.n)
        return scale * self.compress(f, rows)

    def error_factor(self, fed: Federation) -> float:
        """Return √(1 − δ) of C and selection together."""
        _, delta = self.compressor.contraction(fed.n)
        return float(np.sqrt(1 - delta * fed.clients_per_round / fed.m))

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        """Return γ of Theorem 1: √(β/θ) = √(1 − δ)/(1 − √(1 − δ))."""
        left = self.error_factor(fed)
        return float(1 / (np.mean(r) + np.sqrt(np.mean(r * r)) * left / (1 - left)))


class EF21(ErrorFeedback, tag="ef21"):
    """Error feedback: clients upload the server's error of their gradient, compressed; later rounds send the rest.

    x⁺ = x − γ mean g_i;  g_i ← g_i + C(∇f_i(x⁺) − g_i) of the selected clients, from g_i = C(∇f_i(x)) at the start,
    or with start = "full" from ∇f_i(x), as the authors' programs do; what travels before round one is not charged.
    C is contractive; an unbiased one is divided by 1 + ω. By default γ = 1/(L + L̃√(1 − δ)/(1 − √(1 − δ))), with L the
    mean of r_i and L̃ the root of the mean of r_i², and δ|S|/m in place of δ where |S| < m clients are selected
    (mpifed's choice).  Source: Algorithm 2, Theorem 1; partial participation as in
    I. Fatkhullin et al., arXiv:2110.03294 (2021), Algorithm 4.
    """

    title = "EF21"
    plot_style = PlotStyle("purple", 0, 1)
    # The server's estimates are kept on both sides, and each side is in the checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    upload = COMPRESSED_UPLOAD
    theorem = Unsupported(
        "that of arXiv:2106.05203 bounds the gradient at a random one of all iterates, which no model of a run is"
    )

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x, g=fed.mean(self.first, x), gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - rate_at(self.gamma or server.gamma, fed) * server.g
        c = fed.sum(self.refine, x, to=fed.select(x), bits=self.bits(fed))
        return server._replace(x=x, g=server.g + c / fed.m)
