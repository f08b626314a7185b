"""A compressor of symmetric matrices that sends their leading eigenvectors."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.compressors.compressor import Compressor, Draws, matrix_order
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.symmetric import pack, unpack
from mpifed.core.typing import Array


class Rank(Compressor, tag="rank"):
    """The best approximation of rank r: Σ λ_j v_j v_jᵀ over the r eigenvalues largest in absolute value.

    Contractive: δ = r/n for matrices of order n. A message is √|λ_j| v_j and the sign of λ_j: r(n numbers and one bit).
    Source: M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods applicable to federated
    learning", arXiv:2106.02969 (2022), Rank-R.
    """

    # It looks at uploads after their noise.
    supports = Supports.EVERYTHING

    r: Annotated[int, Meta(ge=1, description="rank, at most n")] = 1

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        self.verify(symmetric)
        n = matrix_order(rows.shape[1])
        if self.r >= n:
            return rows
        # The largest in absolute value may be at either end of the spectrum, so all eigenvalues are computed.
        values, vectors = np.linalg.eigh(unpack(rows, n))
        leading = np.argsort(-np.abs(values), axis=1, kind="stable")[:, None, : self.r]
        values = np.take_along_axis(values[:, None], leading, axis=2)
        sent = np.take_along_axis(vectors, leading, axis=2) * np.sqrt(np.abs(values))
        return pack((sent * np.sign(values)) @ sent.mT)

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        self.verify(symmetric)
        n = matrix_order(N)
        return 8 * itemsize * N if self.r >= n else self.r * (8 * itemsize * n + 1)

    def delta(self, N: int, symmetric: bool = False) -> float:
        self.verify(symmetric)
        return min(self.r / matrix_order(N), 1.0)

    def verify(self, symmetric: bool = False) -> None:
        if not symmetric:
            raise UserError(
                "the compressor rank is for symmetric matrices, such as those of fednl, and not for vectors"
            )
