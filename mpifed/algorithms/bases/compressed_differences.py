"""Base of methods on graphs whose nodes send compressed changes of a vector that neighbours keep a copy of."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, BatchSize, Local, UnitFraction, count_gradients, minibatch
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm, GraphFederation
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import TopK
from mpifed.core.arrays import to_numpy
from mpifed.federation.traits import Requirement


class CompressedDifferences(GraphAlgorithm):
    """Base of methods whose nodes mix copies h_j of their neighbours' z_j, kept by messages C(z_j − h_j).

    C is contractive; an unbiased one is divided by 1 + ω. Messages are charged by edge in exact bits.
    """

    gamma: Annotated[UnitFraction | None, Meta(description="weight γ of mixing (default: δ of the compressor)")] = None
    compressor: Annotated[Compressor, Meta(description="contractive compressor C of messages")] = TopK(k="0.1n")
    batch_size: BatchSize = 0

    requires = (Requirement("lipschitz", unless=("eta",)),)
    fixed_weights = "neighbours know a node's vector from all its messages, of which none may be lost"

    def verify(self, selected: int) -> None:
        """Refuse compressors of matrices; one without δ and ω is refused at its first use."""
        self.compressor.verify()

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def message_size(self, n: int) -> tuple[float, float]:
        size = self.compressor.numbers(n, self.upload.vectors)
        return size, size

    def mixing_step(self, net: GraphFederation) -> float:
        """Return the step size γ of mixing."""
        return self.gamma or self.compressor.contraction(net.n)[1]

    def bits(self, net: GraphFederation) -> int:
        """Return the bits of one message with all its vectors."""
        return self.upload.vectors * self.compressor.bits(net.n, net.dtype.itemsize)

    def update_copy(self, f: Local, z: Array, h: Array) -> Array:
        """Return h + C(z − h), the neighbours' copy of z after a message: (c, n)."""
        scale, _ = self.compressor.contraction(f.n)
        rows = self.compressor.compress(to_numpy(z - h), lambda: f.rng)
        return h + scale * f.xp.asarray(rows)

    def gradient(self, f: Local, x: Array) -> Array:
        """Return ∇f_i(x_i) on one mini-batch: (c, n)."""
        return minibatch(f, self.batch_size).grad(x)
