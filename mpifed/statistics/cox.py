"""Proportional hazards, D. R. Cox, "Regression models and life-tables", doi:10.1111/j.2517-6161.1972.tb00899.x
(1972)."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.promises import Supports
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, iter_client_ranges
from mpifed.data.labels import READ, SURVIVAL, LabelKind, abridge
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem, RowMap
from mpifed.statistics.hazards import Hazards, find_risk_sets


class Cox(Problem, tag="cox"):
    """Survival times: f_i(x) = −(1/d_i) Σ_k [⟨a_k, x⟩ − ln Σ_{j: t_j >= t_k} e^⟨a_j, x⟩] + (lam/2)‖x‖², k the events.

    This is the partial likelihood of the samples of client i alone, so f is that of a model stratified by client. A
    label is a time t > 0 if the event happened, and −t if the sample was censored. Of e events at one time each has the
    whole risk set in its sum ("breslow"), or the risk set without 0, 1/e … (e − 1)/e of the e events ("efron").
    A client without events has f_i = (lam/2)‖x‖². There is no bias, and there are no mini-batches.
    r_i = (1/d_i) Σ_k max_{j: t_j >= t_k} ‖a_j − c_i‖² + lam, c_i the mean of the a_j: ∇²f_i is a sum of covariances.
    Source: the partial likelihood; ties of N. Breslow (1974) and of B. Efron, doi:10.1080/01621459.1977.10480613.
    """

    # Risk sets are within a client, so a sample affects others of its client: clipped_grad, which would have to
    # bound the effect of a single one, is not offered. Times are sorted in memory.
    supports = Supports.EVERYTHING & ~Supports.DEVICES

    lam: Annotated[float, Meta(ge=0, description="regularisation λ")] = 0.0
    ties: Annotated[Literal["efron", "breslow"], Meta(description="events at one time")] = "efron"

    linear: ClassVar[str] = "differences"
    sampled: ClassVar[bool] = False
    ratio: ClassVar[str] = "hazard ratio"
    likelihood: ClassVar[str] = "partial, of which sample has its event, given the times of the events of each client"

    def takes(self) -> LabelKind:
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
        """Return r_i: (c,)."""
        return block.once("variance of risk sets", largest_variances) + self.lam

    def convexity(self, block: Block) -> Array:
        """Return α_i = lam: (c,)."""
        return np.full(len(block), self.lam)

    def hessian(self, block: Block, X: Array) -> RowMap:
        """Return a function V -> ∇²f_i(x_i) v_i for rows V (c, n), one pass over the samples for each call."""
        at = self.hazards(block, X)
        W = at.expected()

        def apply(V: Array) -> Array:
            U = block.matvec(V)
            means = at.spread(at.mean(U.take(at.sets.order)))
            return block.vecmat((W * U - means) * block.w) + self.lam * V

        return apply

    def hess(self, block: Block, X: Array) -> Array:
        """Return ∇²f_i(x_i) = (1/d_i) Σ_k Σ_j p_kj (a_j − ā_k)(a_j − ā_k)ᵀ + lam I, ā_k = Σ_j p_kj a_j: (c, n, n)."""
        H = np.empty((len(block), block.n, block.n), block.b.dtype)
        for rows, own, A in block.products.iterate_dense(block):
            H[rows] = self._matrices(own, X if X.ndim == 1 else X[rows], A)
        return H

    def _matrices(self, block: Block, X: Array, A: Array) -> Array:
        """Return ``hess`` of clients with rows A (c, D, n), after subtracting their means: covariances stay."""
        at = self.hazards(block, X)
        sets = at.sets
        # centred first: H is a difference of two matrices of size ‖a‖², which would cancel if means were large
        A = (A - block.vecmat(block.w)[:, None]).reshape(-1, block.n)[sets.order]
        roots = np.sqrt(at.expected() * block.w).take(sets.order)
        M = np.zeros_like(A)
        M.reshape(-1, block.n)[sets.events] = at.mean(A)
        M *= np.sqrt(block.w.take(sets.order))[:, :, None]
        A *= roots[:, :, None]
        H = np.matmul(A.mT, A) - np.matmul(M.mT, M)
        add_diagonal(H, np.array(self.lam, H.dtype))
        return H

    def singularity_reason(self, data: Dataset, x: Array) -> str:
        """Return a sentence that names the columns that are constant in each client, or an empty text."""
        constant = np.ones(data.n, bool)
        for lo, hi in iter_client_ranges(data.sizes, data.n, READ):
            X, y = data.rows(lo, hi)
            X = X.toarray() if sp.issparse(X) else X
            starts = row_offsets(data.sizes[lo:hi])[:-1]
            within = np.maximum.reduceat(X, starts) == np.minimum.reduceat(X, starts)
            constant &= (within | ~np.logical_or.reduceat(y > 0, starts)[:, None]).all(axis=0)
        columns = [data.features[j] if data.features else f"x{j}" for j in np.flatnonzero(constant)]
        if not columns:
            return ""
        are, them = ("is", "it") if len(columns) == 1 else ("are", "them")
        return (
            f"{', '.join(abridge(columns))} {are} the same in all rows of each client, which is a stratum of cox, so f "
            f"does not depend on {them}: leave {them} out, or make one stratum of all rows, with data.clients = 1 and "
            "the column of data.client in data.ignore"
        )

    def log_likelihood(self, block: Block, X: Array, dispersion: float) -> Array:
        """Return the log partial likelihood Σ_k ⟨a_k, x⟩ − ln D_k, k the events: (c,)."""
        at = self.hazards(block, X)
        return -block.sizes * np.vecdot(block.w, self._losses(at))

    def measure_names(self) -> tuple[str, ...]:
        return ("c_index",)

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """Return Harrell's c-index of each client's samples, 1/2 if no two of them can be compared: (c,)."""
        return (concordance(block, block.matvec(X)),)

    def client_measures(self) -> dict[str, Callable[[Block, Array], Array]]:
        return {"c_index": self.c_index}

    def c_index(self, block: Block, X: Array) -> Array:
        """Return Harrell's c-index of each client's samples, NaN if no two of them can be compared: (c,)."""
        return np.where(has_pairs(block), concordance(block, block.matvec(X)), np.nan)

    def hazards(self, block: Block, X: Array) -> Hazards:
        """Return the weights of the samples at each event, at x_i."""
        return Hazards(block, block.matvec(X), self.ties == "efron")

    def _value(self, block: Block, X: Array, at: Hazards) -> Array:
        f = np.vecdot(block.w, self._losses(at))
        return f + self.lam / 2 * np.vecdot(X, X) if self.lam else f

    def _losses(self, at: Hazards) -> Array:
        """Return ln D_k − ⟨a_k, x⟩ at the events k, else 0: (c, D)."""
        losses = np.zeros_like(at.Z)
        losses.reshape(-1)[at.sets.samples] = at.ln_d() - at.Z.take(at.sets.samples)
        return losses

    def _grad(self, block: Block, X: Array, at: Hazards) -> Array:
        """Return A_iᵀ(expected events − events)/d_i + lam x_i."""
        R = at.expected()
        R.reshape(-1)[at.sets.samples] -= 1
        R *= block.w
        G = block.vecmat(R)
        return G + self.lam * X if self.lam else G


def largest_variances(block: Block) -> Array:
    """Return (1/d_i) Σ_k max_j ‖a_j − c_i‖² over the samples j at risk at each event k: (c,).

    Methods divide by r_i. If it is 0, as without events, return max_j ‖a_j‖²/d_i, since any number is a bound.
    """
    sets = find_risk_sets(block)
    center = block.vecmat(block.w)
    squares, distances = block.products.squares(block, center)
    largest = np.maximum.accumulate(distances.take(sets.order), axis=1)
    terms = np.zeros_like(largest)
    terms.reshape(-1)[sets.events] = largest.reshape(-1)[sets.risk]
    variances = np.vecdot(block.w.take(sets.order), terms)
    return np.where(variances > 0, variances, (squares * block.w).max(axis=1))


class ComparablePairs(NamedTuple):
    """The samples of each client by rising time, events before those censored at that time, padded to 2^k.

    ``order`` (c, P): positions in the (c, D) samples, row by row; ``real``: which are no padding; ``events``: which are
    events. ``turn`` (c, P): rising numbers, equal for events at one time: an event and a later turn make a pair.
    ``tied``: whether some are equal. ``number`` (c,): how many pairs there are.
    """

    order: Array
    real: Array
    events: Array
    turn: Array
    tied: bool
    number: Array


def concordance(block: Block, Z: Array) -> Array:
    """Return Harrell's c-index at scores z (c, D) for each client: (c,); 1/2 if there is no pair.

    In a pair one sample has an event, and the other has a later time or is censored at the same time; the c-index is
    the fraction of pairs in which the earlier event has the higher score. Equal scores count 1/2.
    Source: F. E. Harrell et al., "Evaluating the yield of medical tests", doi:10.1001/jama.1982.03320430047030 (1982).
    """
    pairs: ComparablePairs = block.note("pairs", find_pairs)
    scores = np.where(pairs.real, Z.take(pairs.order), np.inf)
    # events at one time are no pair: sorted by rising score they make no inversion
    if pairs.tied:
        scores = np.take_along_axis(scores, np.lexsort((scores, pairs.turn), axis=-1), axis=1)
    rising = np.argsort(scores, axis=1, kind="stable")
    higher = as_high = count_inversions(rising, pairs.events)
    ranked = np.take_along_axis(scores, rising, axis=1)
    # equal scores count a half: the mean of sorting them as no inversions and as inversions.
    # Only padding is infinite, and padding is in no pair
    if ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < np.inf)).any():
        as_high = count_inversions(np.lexsort((-pairs.turn, scores), axis=-1), pairs.events)
    return np.where(pairs.number, (higher + as_high) / (2 * np.maximum(pairs.number, 1)), 0.5)


def has_pairs(block: Block) -> Array:
    """Return which clients have a pair: (c,) bool."""
    pairs: ComparablePairs = block.note("pairs", find_pairs)
    return pairs.number > 0


def find_pairs(block: Block) -> ComparablePairs:
    """Sort the samples of each client by time and count their comparable pairs."""
    c, D = block.b.shape
    real = block.w > 0
    times = np.where(real, np.abs(block.b), np.inf)
    order = np.lexsort((block.b < 0, times), axis=-1)
    # a power of two, so that ``count_inversions`` can halve groups down to single elements, all rows at once
    P = 1 << max(D - 1, 0).bit_length()
    order = np.pad(order, ((0, 0), (0, P - D))) + np.arange(0, c * D, D)[:, None]
    real = real.take(order) & (np.arange(P) < D)
    events = real & (block.b.take(order) > 0)
    times = times.take(order)
    tied = events[:, 1:] & events[:, :-1] & (times[:, 1:] == times[:, :-1])
    turn = np.pad(np.cumsum(~tied, axis=1), ((0, 0), (1, 0)))
    last = np.where(np.pad(~tied, ((0, 0), (0, 1)), constant_values=True), np.arange(P), P)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    number = np.where(events, real.sum(axis=1, keepdims=True) - 1 - last, 0).sum(axis=1)
    return ComparablePairs(order, real, events, turn, bool(tied.any()), number)


def count_inversions(sorting: Array, marked: Array) -> Array:
    """Count, for each row, the pairs of a marked element and a later, smaller one: (c,).

    ``sorting`` (c, 2^k): the positions of the elements by rising size; no two have the same size. The ranks of two
    elements share their leading binary digits up to the first that differs; elements with the same leading digits form
    a group, and half of a group has 1 as the next digit.
    """
    c, P = sorting.shape
    ranks = np.empty_like(sorting)
    np.put_along_axis(ranks, sorting, np.arange(P)[None], axis=1)
    words = (2 * ranks + marked).reshape(c, 1, P)
    counts = np.zeros(c, np.int64)
    while P > 1:
        high = (words & P).astype(bool)  # the digit of P/2 in the rank
        before = np.cumsum(high & (words & 1).astype(bool), axis=2)
        counts += np.where(high, 0, before).sum(axis=(1, 2))
        P //= 2
        low, up = (words[part].reshape(c, -1, P) for part in (~high, high))
        words = np.concatenate([low, up], axis=2).reshape(c, -1, P)
    return counts
