"""What FedNL and FedNL-PP share: their compressor and its learning rate, their steps, and their first Hessians."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, tuned
from mpifed.algorithms.parts.newton_steps import direction
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import TopK
from mpifed.core.errors import UserError
from mpifed.core.symmetric import add_diagonal, entries, order, unpack
from mpifed.federation.traits import Mean, Upload

REGULAR = "a mean Hessian that is positive definite: columns that depend on each other need regularisation above 0"


class LearnedHessians(Algorithm):
    """Methods whose clients keep H_i and send C(∇²f_i − H_i), the compressed difference, packed: H_i ← H_i + αC(·)."""

    compressor: Annotated[Compressor, Meta(description="C, for symmetric matrices of order n")] = TopK(k="8n")
    alpha: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        tuned("learning rate α of H_i (default: 1/(1 + ω) where C is unbiased, else 1)"),
    ] = None

    mean = Mean.UNBIASED  # the server has the last g_i of all
    upload = Upload(
        kind="compressed",
        exact=dict.fromkeys(("up", "down"), "it compresses Hessians itself: algorithm.compressor says how"),
    )

    def verify(self, selected: int) -> None:
        """Refuse a compressor that is not for matrices."""
        self.compressor.verify(symmetric=True)

    def rate(self, n: int) -> float:
        """α of the paper's theorems: 1 for contractive C, 1/(1 + ω) for unbiased C."""
        if self.alpha is not None:
            return self.alpha
        omega = self.compressor.omega(entries(n), symmetric=True)
        return 1.0 if omega is None else 1 / (1 + omega)

    def work(self, d: Array) -> None:
        """Unknown: a Hessian is no sample gradient."""

    def traffic(self, n: int) -> tuple[int, int]:
        """Without the trial points of a line search; a compressed matrix counts as so many numbers of 64 bits."""
        return n, n + 1 + -(-self.compressor.bits(entries(n), 8, symmetric=True) // 64)

    def bits(self, fed: Federation, more: int) -> int:
        """The bits of a compressed matrix and of ``more`` numbers."""
        size = fed.dtype.itemsize
        return self.compressor.bits(entries(fed.n), size, symmetric=True) + 8 * size * more

    def first(self, f: Local, client: Any, x: Array) -> tuple[Any, Any]:
        """H_i⁰ = ∇²f_i(x⁰), packed: (c, n(n+1)/2)."""
        H = f.packed_hess(x)
        return client._replace(H=H), H

    def learned(self, f: Local, H: Array, x: Array) -> tuple[Array, Array, Array]:
        """∇²f_i(x) − H_i and C of it, packed, and the new H_i: (c, n(n+1)/2) each."""
        # in place: a matrix for each client is the largest thing that this method has
        D = f.packed_hess(x)
        D -= H
        S = self.compressor.compress(D, lambda: f.rng, symmetric=True)
        alpha = self.rate(f.n)
        return D, S, H + (S if alpha == 1 else alpha * S)

    def step(self, H: Array, g: Array, l: float, x: Array) -> Array:
        """−[H + l I]⁻¹ g of a packed H at the model x: (n,)."""
        return direction(shifted(H, l), g, self.label(), x)

    def projected_step(self, H: Array, g: Array, mu: float, x: Array) -> Array:
        """The same with H projected onto the symmetric matrices ⪰ μI, which sets its eigenvalues below μ to μ."""
        # mostly H is above μI: then nothing is to be projected, and a factorisation finds that out in much less time
        try:
            np.linalg.cholesky(shifted(H, -mu))
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(shifted(H, 0.0))
            return -vectors @ (vectors.T @ g / np.maximum(values, mu))
        return self.step(H, g, 0.0, x)

    def strong_convexity(self, fed: Federation) -> float:
        """μ, the mean of the α_i of all clients. UserError where it is not above 0."""
        mu = float(fed.mean(self.curvature))
        if not mu > 0:
            raise UserError(
                f'algorithm.option = "A" cannot be used: {fed.problem.label()} is not strongly convex as it stands, so '
                'set its regularisation above 0, or option = "B"'
            )
        return mu

    def curvature(self, f: Local, client: Any) -> tuple[Any, Array]:
        """α_i: (c,)."""
        return client, f.convexity()


def shifted(H: Array, l: float) -> Array:
    """H + l I of a packed H: (n, n)."""
    matrix = unpack(H, order(len(H)))
    add_diagonal(matrix, np.array(l, matrix.dtype))
    return matrix
