"""What methods on graphs share whose nodes send compressed differences to what their neighbours know of a vector."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Local, Share, minibatch, passes
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm, Network
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import TopK
from mpifed.core.arrays import to_numpy
from mpifed.federation.traits import Need


class CompressedDifferences(GraphAlgorithm):
    """Methods whose nodes know of a neighbour's vector z_j the sum h_j of all its messages C(z_j − h_j), and mix these.

    C is contractive; an unbiased one is divided by 1 + ω. Messages are charged by edge in exact bits.
    """

    gamma: Annotated[Share | None, Meta(description="step size γ of mixing (default: δ of the compressor)")] = None
    compressor: Annotated[Compressor, Meta(description="contractive compressor C of messages")] = TopK(k="0.1n")
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (Need("lipschitz", unless=("eta",)),)
    fixed_weights = "neighbours know a node's vector from all its messages, of which none may be lost"

    def verify(self, selected: int) -> None:
        """Refuse compressors of matrices; those without δ and ω are refused at their first use."""
        self.compressor.verify()

    def work(self, d: Array) -> Array:
        return passes(d, 1, 0, self.batch_size)

    def traffic(self, n: int) -> tuple[float, float]:
        size = self.compressor.numbers(n, self.upload.vectors)
        return size, size

    def mixing(self, net: Network) -> float:
        """γ."""
        return self.gamma or self.compressor.contraction(net.n)[1]

    def bits(self, net: Network) -> int:
        """The bits of one message, with all vectors in it."""
        return self.upload.vectors * self.compressor.bits(net.n, net.dtype.itemsize)

    def sent(self, f: Local, z: Array, h: Array) -> Array:
        """h + C(z − h), what neighbours know of z (c, n) after a message."""
        scale, _ = self.compressor.contraction(f.n)
        rows = self.compressor.compress(to_numpy(z - h), lambda: f.rng)
        return h + scale * f.xp.asarray(rows)

    def gradient(self, f: Local, x: Array) -> Array:
        """∇f_i(x_i) on one mini-batch: (c, n)."""
        return minibatch(f, self.batch_size).grad(x)
