"""Proportional hazards, D. R. Cox, "Regression models and life-tables", doi:10.1111/j.2517-6161.1972.tb00899.x
(1972)."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import starts_of
from mpifed.core.promises import Keeps
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, ranges
from mpifed.data.labels import READ, SURVIVAL, Kind, folded
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem, Solve
from mpifed.statistics.concordance import comparable, concordance
from mpifed.statistics.hazards import Hazards, risk_sets


class Cox(Problem, tag="cox"):
    """Survival times: f_i(x) = −(1/d_i) Σ_k [⟨a_k, x⟩ − ln Σ_{j: t_j >= t_k} e^⟨a_j, x⟩] + (lam/2)‖x‖², k the events.

    That is the partial likelihood of the samples of client i alone, so f is that of a model stratified by client. A
    label is a time t > 0 where the event happened, and −t where the sample was censored. Of e events at one time each
    has the whole risk set in its sum ("breslow"), or they have it without 0, 1/e … (e − 1)/e of the e ("efron").
    A client without events has f_i = (lam/2)‖x‖². There is no bias, and there are no mini-batches.
    r_i = (1/d_i) Σ_k max_{j: t_j >= t_k} ‖a_j − c_i‖² + lam, c_i the mean of the a_j: ∇²f_i is a sum of covariances.
    Source: the partial likelihood; ties of N. Breslow (1974) and of B. Efron, doi:10.1080/01621459.1977.10480613.
    """

    # Risk sets are those of one client, so that a sample moves others of it alone: clipped_grad, which would have to
    # bound a single one, is not offered. Times are sorted in memory.
    keeps = Keeps.EVERYTHING & ~Keeps.DEVICES

    lam: Annotated[float, Meta(ge=0, description="regularisation λ")] = 0.0
    ties: Annotated[Literal["efron", "breslow"], Meta(description="events at one time")] = "efron"

    linear: ClassVar[str] = "differences"
    sampled: ClassVar[bool] = False
    ratio: ClassVar[str] = "hazard ratio"
    likelihood: ClassVar[str] = "partial, of which sample has its event, given the times of the events of each client"

    def takes(self) -> Kind:
        return "survival"

    def labels(self, b: Array) -> Array:
        if (~np.signbit(b) & (b == 0)).any():
            raise ValueError(f"{SURVIVAL}, but there is a 0; -0 is censored at 0")
        return b

    def value(self, block: Block, X: Array) -> Array:
        return self._value(block, X, self.hazards(block, X))

    def grad(self, block: Block, X: Array) -> Array:
        return self._grad(block, X, self.hazards(block, X))

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        at = self.hazards(block, X)
        return self._value(block, X, at), self._grad(block, X, at)

    def lipschitz(self, block: Block) -> Array:
        """r_i: (c,)."""
        return block.once("variance of risk sets", largest_variances) + self.lam

    def convexity(self, block: Block) -> Array:
        """α_i = lam: (c,)."""
        return np.full(len(block), self.lam)

    def hessian(self, block: Block, X: Array) -> Solve:
        """V -> ∇²f_i(x_i) v_i for rows V (c, n), from one pass over the samples each."""
        at = self.hazards(block, X)
        W = at.expected()

        def apply(V: Array) -> Array:
            U = block.matvec(V)
            pulled = at.spread(at.mean(U.take(at.sets.order)))
            return block.vecmat((W * U - pulled) * block.w) + self.lam * V

        return apply

    def hess(self, block: Block, X: Array) -> Array:
        """∇²f_i(x_i) = (1/d_i) Σ_k Σ_j p_kj (a_j − ā_k)(a_j − ā_k)ᵀ + lam I, ā_k = Σ_j p_kj a_j: (c, n, n)."""
        H = np.empty((len(block), block.n, block.n), block.b.dtype)
        for rows, own, A in block.products.in_full(block):
            H[rows] = self._matrices(own, X if X.ndim == 1 else X[rows], A)
        return H

    def _matrices(self, block: Block, X: Array, A: Array) -> Array:
        """``hess`` of clients with rows A (c, D, n), from which their means are taken: no covariance changes."""
        at = self.hazards(block, X)
        sets = at.sets
        # centred first: H is a difference of two matrices of the size of ‖a‖², which would cancel where means are large
        A = (A - block.vecmat(block.w)[:, None]).reshape(-1, block.n)[sets.order]
        roots = np.sqrt(at.expected() * block.w).take(sets.order)
        M = np.zeros_like(A)
        M.reshape(-1, block.n)[sets.events] = at.mean(A)
        M *= np.sqrt(block.w.take(sets.order))[:, :, None]
        A *= roots[:, :, None]
        H = np.matmul(A.mT, A) - np.matmul(M.mT, M)
        add_diagonal(H, np.array(self.lam, H.dtype))
        return H

    def flat(self, data: Dataset, x: Array) -> str:
        """That columns are the same in all rows of each client, where the partial likelihood takes differences."""
        same = np.ones(data.n, bool)
        for lo, hi in ranges(data.sizes, data.n, READ):
            X, y = data.rows(lo, hi)
            X = X.toarray() if sp.issparse(X) else X
            starts = starts_of(data.sizes[lo:hi])[:-1]
            own = np.maximum.reduceat(X, starts) == np.minimum.reduceat(X, starts)
            same &= (own | ~np.logical_or.reduceat(y > 0, starts)[:, None]).all(axis=0)
        which = [data.features[j] if data.features else f"x{j}" for j in np.flatnonzero(same)]
        if not which:
            return ""
        are, them = ("is", "it") if len(which) == 1 else ("are", "them")
        return (
            f"{', '.join(folded(which))} {are} the same in all rows of each client, which is a stratum of cox, so f "
            f"does not depend on {them}: leave {them} out, or make one stratum of all rows, with data.clients = 1 and "
            "the column of data.client in data.ignore"
        )

    def log_likelihood(self, block: Block, X: Array, dispersion: float) -> Array:
        """The log partial likelihood Σ_k ⟨a_k, x⟩ − ln D_k, k the events: (c,)."""
        at = self.hazards(block, X)
        return -block.sizes * np.vecdot(block.w, self._losses(at))

    def measured(self) -> tuple[str, ...]:
        return ("c_index",)

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """Harrell's c-index of each client's samples, 1/2 where no two of them can be compared: (c,)."""
        return (concordance(block, block.matvec(X)),)

    def of_clients(self) -> dict[str, Callable[[Block, Array], Array]]:
        return {"c_index": self.c_index}

    def c_index(self, block: Block, X: Array) -> Array:
        """The same, NaN where no two of the samples can be compared: (c,)."""
        return np.where(comparable(block), concordance(block, block.matvec(X)), np.nan)

    def hazards(self, block: Block, X: Array) -> Hazards:
        """The weights of the samples at each event, at x_i."""
        return Hazards(block, block.matvec(X), self.ties == "efron")

    def _value(self, block: Block, X: Array, at: Hazards) -> Array:
        f = np.vecdot(block.w, self._losses(at))
        return f + self.lam / 2 * np.vecdot(X, X) if self.lam else f

    def _losses(self, at: Hazards) -> Array:
        """ln D_k − ⟨a_k, x⟩ at the events k, else 0: (c, D)."""
        losses = np.zeros_like(at.Z)
        losses.reshape(-1)[at.sets.samples] = at.ln_d() - at.Z.take(at.sets.samples)
        return losses

    def _grad(self, block: Block, X: Array, at: Hazards) -> Array:
        """A_iᵀ(expected events − events)/d_i + lam x_i."""
        R = at.expected()
        R.reshape(-1)[at.sets.samples] -= 1
        R *= block.w
        G = block.vecmat(R)
        return G + self.lam * X if self.lam else G


def largest_variances(block: Block) -> Array:
    """(1/d_i) Σ_k max_j ‖a_j − c_i‖² over the samples j at risk at each event k: (c,).

    Methods divide by r_i. Where it is 0, as without events, it is max_j ‖a_j‖²/d_i, for any number is a bound.
    """
    sets = risk_sets(block)
    center = block.vecmat(block.w)
    squares, distances = block.products.squares(block, center)
    most = np.maximum.accumulate(distances.take(sets.order), axis=1)
    terms = np.zeros_like(most)
    terms.reshape(-1)[sets.events] = most.reshape(-1)[sets.risk]
    found = np.vecdot(block.w.take(sets.order), terms)
    return np.where(found > 0, found, (squares * block.w).max(axis=1))
