"""EF21, Algorithm 2 of P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and
practically faster error feedback", arXiv:2106.05203 (2021)."""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta, field

from mpifed.algorithms.bases.algorithm import Array, Federation, Local
from mpifed.algorithms.bases.compressed_gradients import COMPRESSED, CompressedGradients
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import TopK
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Refused


class Client(NamedTuple):
    g: Array  # (c, n) what the server knows of ∇f_i


class Server(NamedTuple):
    x: Array  # (n,) model
    g: Array  # (n,) mean of all g_i
    gamma: float  # step size γ


class ErrorFeedback(CompressedGradients):
    """Methods whose clients upload what the server lacks of a gradient, compressed by a contractive C.

    The field is ``begin`` because ``start`` is a method; in experiment files it is ``start``.
    """

    compressor: Annotated[Compressor, Meta(description="contractive compressor C of uploads")] = TopK(k="0.1n")
    begin: Annotated[
        Literal["compressed", "full"], Meta(description="g_i at the start: C(∇f_i(x⁰)) or ∇f_i(x⁰) in full")
    ] = field(default="compressed", name="start")

    biased = True

    def join(self, f: Local) -> Client:
        return Client(g=f.zeros())

    def first(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """g_i at the start."""
        g = f.grad(x)
        c = g if self.begin == "full" else self.contracted(f, g)
        return Client(g=client.g + c), c

    def refine(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """C(∇f_i(x) − g_i)."""
        c = self.contracted(f, self.gradient(f, x) - client.g)
        return Client(g=client.g + c), c

    def gradient(self, f: Local, x: Array) -> Array:
        """What g_i is to come close to: (c, n)."""
        return f.grad(x)

    def contracted(self, f: Local, rows: Array) -> Array:
        """C of rows (c, n), or C/(1 + ω) of them where C is unbiased."""
        scale, _ = self.compressor.contraction(f.n)
        return scale * self.compressed(f, rows)

    def left(self, fed: Federation) -> float:
        """√(1 − δ) of C and of the selection."""
        _, delta = self.compressor.contraction(fed.n)
        return float(np.sqrt(1 - delta * fed.cohort / fed.m))

    def theory(self, fed: Federation, r: Array) -> float:
        """Theorem 1: √(β/θ) = √(1 − δ)/(1 − √(1 − δ))."""
        left = self.left(fed)
        return float(1 / (np.mean(r) + np.sqrt(np.mean(r * r)) * left / (1 - left)))


class EF21(ErrorFeedback, tag="ef21"):
    """Error feedback: clients upload what the server lacks of their gradient, compressed; later uploads have the rest.

    x⁺ = x − γ mean g_i;  g_i ← g_i + C(∇f_i(x⁺) − g_i) of the selected clients, from g_i = C(∇f_i(x)) at the start,
    or with start = "full" from ∇f_i(x), as the authors' programs do; what travels before round one is not charged.
    C is contractive; an unbiased one is divided by 1 + ω. By default γ = 1/(L + L̃√(1 − δ)/(1 − √(1 − δ))), with L the
    mean of r_i and L̃ the root of the mean of r_i², and δ|S|/m in the place of δ where |S| < m clients are selected,
    which is ours.  Source: Algorithm 2, Theorem 1; partial participation as in
    I. Fatkhullin et al., arXiv:2110.03294 (2021), Algorithm 4.
    """

    title = "EF21"
    look = Look("purple", 0, 1)
    # What the server knows of gradients is kept on both sides, and each side is in the checkpoint.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    upload = COMPRESSED
    theorem = Refused(
        "that of arXiv:2106.05203 bounds the gradient at a random one of all iterates, which no model of a run is"
    )

    def start(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x, g=fed.mean(self.first, x), gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - server.gamma * server.g
        c = fed.sum(self.refine, x, to=fed.select(x), bits=self.bits(fed))
        return server._replace(x=x, g=server.g + c / fed.m)
