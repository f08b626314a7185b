"""What methods with compressed gradients share: a compressor that fits them, and the step size of theory."""

from abc import abstractmethod
from typing import Annotated, ClassVar

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, Positive, tuned
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import RandK
from mpifed.core.arrays import to_numpy
from mpifed.core.errors import UserError
from mpifed.federation.traits import Mean, Need, Upload

COMPRESSED = Upload(kind="compressed", exact={"up": "it compresses them itself: algorithm.compressor says how"})


class CompressedGradients(Algorithm):
    """Methods whose selected clients upload a compressed gradient of n numbers; memory makes up for the errors.

    A client that is not selected sends nothing, which is a compressor too: with |S| of m clients a round, selection
    and C together are contractive with δ|S|/m where C is with δ, and, times m/|S|, unbiased with (1 + ω)m/|S| − 1
    where C is with ω. Theory is applied to these.
    """

    gamma: Annotated[Positive | None, tuned("step size γ (default: that of theory)")] = None
    compressor: Annotated[Compressor, Meta(description="unbiased compressor C of uploads")] = RandK(k="0.1n")

    biased: ClassVar[bool] = False  # whether the compressor may be biased
    requires = (Need("lipschitz", unless=("gamma",)),)
    mean = Mean.UNBIASED  # what clients remember is exact at the fixed point

    def verify(self, selected: int) -> None:
        """Refuse compressors of matrices, and biased ones where they must not be."""
        self.compressor.verify()
        if not self.biased and self.compressor.omega(1) is None:
            raise UserError(
                f'algorithm.compressor = "{self.compressor.label()}" is wrong: {self.label()} needs an unbiased one, '
                "E C(x) = x, such as randk, randseqk, natural or dither"
            )

    def traffic(self, n: int) -> tuple[float, float]:
        return n, self.compressor.numbers(n)

    def bits(self, fed: Federation) -> int:
        return self.compressor.bits(fed.n, fed.dtype.itemsize)

    def compressed(self, f: Local, rows: Array) -> Array:
        """C of rows (c, n)."""
        # streams are made when a compressor draws from them: most do not, and there is one for each client
        return f.xp.asarray(self.compressor.compress(to_numpy(rows), lambda: f.rng))

    def rate(self, fed: Federation) -> float:
        """γ."""
        return self.gamma or self.theory(fed, fed.call(self.smoothness).astype(float))

    @abstractmethod
    def theory(self, fed: Federation, r: Array) -> float:
        """The step size of theory, with r_i (m,) in the place of the L_i."""

    def variance(self, fed: Federation) -> float:
        """ω of C, and of the selection."""
        omega = self.compressor.omega(fed.n)
        assert omega is not None
        return (1 + omega) * fed.m / fed.cohort - 1
