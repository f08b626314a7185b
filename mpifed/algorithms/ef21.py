"""EF21, Algorithm 2 of P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and
practically faster error feedback", arXiv:2106.05203 (2021)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Federation, Local
from mpifed.algorithms.bases.compressed_gradients import CompressedGradients
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


class EF21(CompressedGradients, tag="ef21"):
    """Error feedback: clients upload what the server lacks of their gradient, compressed; later uploads have the rest.

    x⁺ = x − γ mean g_i;  g_i ← g_i + C(∇f_i(x⁺) − g_i) of the selected clients, from g_i = C(∇f_i(x)) at the start.
    C is contractive; an unbiased one is divided by 1 + ω. By default γ = 1/(L + L̃√(1 − δ)/(1 − √(1 − δ))), with L the
    mean of r_i and L̃ the root of the mean of r_i², and δ|S|/m in the place of δ where |S| < m clients are selected,
    which is ours.  Source: Algorithm 2, Theorem 1; partial participation as in
    I. Fatkhullin et al., arXiv:2110.03294 (2021), Algorithm 4.
    """

    title = "EF21"
    look = Look("purple", 0, 1)
    # What the server knows of gradients is kept on both sides, and each side is in the checkpoint.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Refused(
        "that of arXiv:2106.05203 bounds the gradient at a random one of all iterates, which no model of a run is"
    )

    compressor: Annotated[Compressor, Meta(description="contractive compressor C of uploads")] = TopK(k="0.1n")

    biased = True

    def join(self, f: Local) -> Client:
        return Client(g=f.zeros())

    def start(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x, g=fed.mean(self.refine, x), gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - server.gamma * server.g
        c = fed.sum(self.refine, x, to=fed.select(x), bits=self.bits(fed))
        return server._replace(x=x, g=server.g + c / fed.m)

    def refine(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """C(∇f_i(x) − g_i)."""
        scale, _ = self.compressor.contraction(f.n)
        c = scale * self.compressed(f, f.grad(x) - client.g)
        return Client(g=client.g + c), c

    def theory(self, fed: Federation, r: Array) -> float:
        """Theorem 1: √(β/θ) = √(1 − δ)/(1 − √(1 − δ))."""
        _, delta = self.compressor.contraction(fed.n)
        left = np.sqrt(1 - delta * fed.cohort / fed.m)
        return float(1 / (np.mean(r) + np.sqrt(np.mean(r * r)) * left / (1 - left)))
