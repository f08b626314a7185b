"""Base of methods with compressed gradients: the compressor, and the default step size by theory."""

from abc import abstractmethod
from typing import Annotated, ClassVar

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, to_tune
from mpifed.algorithms.parts.step_sizes import Rate, rate_at
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import RandK
from mpifed.core.arrays import to_numpy
from mpifed.core.errors import UserError
from mpifed.federation.traits import MeanEstimate, Requirement, Upload

COMPRESSED_UPLOAD = Upload(
    content="compressed", exact={"up": "it compresses them itself: algorithm.compressor says how"}
)


class CompressedGradients(Algorithm):
    """Base of methods that upload a compressed gradient of n numbers; memory makes up for its errors.

    Selection compresses too: with |S| of m clients a round, selection and C together are contractive with δ|S|/m for C
    with δ, and, times m/|S|, unbiased with (1 + ω)m/|S| − 1 for C with ω. Theory is applied to these.
    """

    gamma: Annotated[Rate | None, to_tune("step size γ (default: that of theory)")] = None
    compressor: Annotated[Compressor, Meta(description="unbiased compressor C of uploads")] = RandK(k="0.1n")

    biased: ClassVar[bool] = False  # whether the compressor may be biased
    requires = (Requirement("lipschitz", unless=("gamma",)),)
    mean_estimate = MeanEstimate.UNBIASED  # clients' memory is exact at the fixed point

    def verify(self, selected: int) -> None:
        """Refuse compressors of matrices, and biased ones where the method needs an unbiased one."""
        self.compressor.verify()
        if not self.biased and self.compressor.omega(1) is None:
            raise UserError(
                f'algorithm.compressor = "{self.compressor.label()}" is wrong: {self.label()} needs an unbiased one, '
                "E C(x) = x, such as randk, randseqk, natural or dither"
            )

    def message_size(self, n: int) -> tuple[float, float]:
        return n, self.compressor.numbers(n)

    def bits(self, fed: Federation) -> int:
        return self.compressor.bits(fed.n, fed.dtype.itemsize)

    def compress(self, f: Local, rows: Array) -> Array:
        """Apply C to rows (c, n)."""
        # streams are made when a compressor draws from them: most do not, and there is one for each client
        return f.xp.asarray(self.compressor.compress(to_numpy(rows), lambda: f.rng))

    def rate(self, fed: Federation) -> float:
        """Return the step size γ, of a schedule the first."""
        return rate_at(self.gamma or self.theory_gamma(fed, fed.call(self.smoothness).astype(float)), fed)

    @abstractmethod
    def theory_gamma(self, fed: Federation, r: Array) -> float:
        """Return the default step size by theory, with r_i (m,) for the L_i."""

    def total_omega(self, fed: Federation) -> float:
        """Return ω of C and selection together."""
        omega = self.compressor.omega(fed.n)
        assert omega is not None
        return (1 + omega) * fed.m / fed.clients_per_round - 1
