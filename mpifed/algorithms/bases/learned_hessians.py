"""Base of FedNL and FedNL-PP: the compressor, its learning rate, Newton steps, and the first Hessians."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, to_tune
from mpifed.algorithms.parts.newton_steps import newton_direction
from mpifed.algorithms.parts.step_sizes import Rate, Step, rate_at
from mpifed.compressors.compressor import Compressor
from mpifed.compressors.sparse import TopK
from mpifed.core.errors import UserError
from mpifed.core.symmetric import add_diagonal, order_of_packed, packed_size, unpack
from mpifed.federation.traits import MeanEstimate, Upload

REGULAR_HESSIAN = (
    "a mean Hessian that is positive definite: columns that depend on each other need regularisation above 0"
)


class LearnedHessians(Algorithm):
    """Base of methods that learn packed Hessians H_i from compressed differences: H_i ← H_i + αC(∇²f_i − H_i)."""

    compressor: Annotated[Compressor, Meta(description="C, for symmetric matrices of order n")] = TopK(k="8n")
    alpha: Annotated[
        Rate | None,
        to_tune("learning rate α of H_i (default: 1/(1 + ω) where C is unbiased, else 1)"),
    ] = None

    mean_estimate = MeanEstimate.UNBIASED  # the server has the last g_i of all
    upload = Upload(
        content="compressed",
        exact=dict.fromkeys(("up", "down"), "it compresses Hessians itself: algorithm.compressor says how"),
    )

    def verify(self, selected: int) -> None:
        """Refuse a compressor that is not for matrices."""
        self.compressor.verify(symmetric=True)

    def rate(self, n: int) -> float | Step:
        """Return α or its schedule, by default of the theorems: 1 for contractive C, 1/(1 + ω) for unbiased C."""
        if self.alpha is not None:
            return self.alpha
        omega = self.compressor.omega(packed_size(n), symmetric=True)
        return 1.0 if omega is None else 1 / (1 + omega)

    def sample_gradients(self, d: Array) -> None:
        """Return None, because a Hessian is no sample gradient."""

    def message_size(self, n: int) -> tuple[int, int]:
        """Return (down, up) in numbers of 64 bits, without the trial points of a line search."""
        return n, n + 1 + -(-self.compressor.bits(packed_size(n), 8, symmetric=True) // 64)

    def bits(self, fed: Federation, more: int) -> int:
        """Return the bits of a compressed matrix and of ``more`` numbers."""
        size = fed.dtype.itemsize
        return self.compressor.bits(packed_size(fed.n), size, symmetric=True) + 8 * size * more

    def first(self, f: Local, client: Any, x: Array) -> tuple[Any, Any]:
        """Return H_i⁰ = ∇²f_i(x⁰), packed: (c, n(n+1)/2)."""
        H = f.packed_hess(x)
        return client._replace(H=H), H

    def learn_hessian(self, f: Local, H: Array, x: Array) -> tuple[Array, Array, Array]:
        """Return D = ∇²f_i(x) − H_i, C(D) and the new H_i, packed: (c, n(n+1)/2) each."""
        # in place: the clients' matrices are the largest arrays of this method
        D = f.packed_hess(x)
        D -= H
        S = self.compressor.compress(D, lambda: f.rng, symmetric=True)
        alpha = rate_at(self.rate(f.n), f)
        return D, S, H + (S if alpha == 1 else alpha * S)

    def step(self, H: Array, g: Array, l: float, x: Array) -> Array:
        """Return −[H + l I]⁻¹ g of a packed H at the model x: (n,)."""
        return newton_direction(add_to_diagonal(H, l), g, self.label(), x)

    def projected_step(self, H: Array, g: Array, mu: float, x: Array) -> Array:
        """Return −H⁻¹ g with H projected onto the matrices ⪰ μI: its eigenvalues below μ become μ."""
        # mostly H ⪰ μI already, which a factorisation tells much faster than eigenvalues
        try:
            np.linalg.cholesky(add_to_diagonal(H, -mu))
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(add_to_diagonal(H, 0.0))
            return -vectors @ (vectors.T @ g / np.maximum(values, mu))
        return self.step(H, g, 0.0, x)

    def strong_convexity(self, fed: Federation) -> float:
        """Return μ, the mean of α_i over all clients; raise UserError unless it is above 0."""
        mu = float(fed.mean(self.curvature))
        if not mu > 0:
            raise UserError(
                f'algorithm.option = "A" cannot be used: {fed.problem.label()} is not strongly convex as it stands, so '
                'set its regularisation above 0, or option = "B"'
            )
        return mu

    def curvature(self, f: Local, client: Any) -> tuple[Any, Array]:
        """Return α_i: (c,)."""
        return client, f.convexity()


def add_to_diagonal(H: Array, l: float) -> Array:
    """Return H + l I of a packed H: (n, n)."""
    matrix = unpack(H, order_of_packed(len(H)))
    add_diagonal(matrix, np.array(l, matrix.dtype))
    return matrix
