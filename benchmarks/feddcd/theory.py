"""Guaranteed rates and lower bounds of sections 4 to 7 of FedDCD, compared with measured rates on quadratic f_i."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mpifed import Result
from mpifed.experiment import config
from mpifed.extend import Array
from mpifed.theory import feddcd


class Theory(NamedTuple):
    """The quantities of sections 4 to 7 for a run on quadratic f_i.

    ``alpha`` and ``beta`` are the constants that the algorithm uses. ``most`` is the β of the construction (41), whose
    f_i are in fact smoother. w* minimises f, y*_i = ∇f_i(w*), and ``f`` is f(w*).
    """

    accelerated: bool
    N: int
    tau: int
    alpha: float
    beta: float
    most: float
    w: Array  # (n,) w*
    y: Array  # (N, n) y*
    f: float

    @property
    def r(self) -> float:
        """r = (τ − 1)/(N − 1)."""
        return (self.tau - 1) / (self.N - 1)

    @property
    def exchanges(self) -> int:
        """Exchanges per iteration."""
        return 2 if self.accelerated else 1

    @property
    def a(self) -> float:
        """a of Algorithm 2."""
        return feddcd.momentum_weight(self.r, self.alpha / self.beta)

    @property
    def upper(self) -> float:
        """The guaranteed factor per iteration: 1 − r α/β by (3), 1 − a by (10)."""
        return 1 - self.a if self.accelerated else feddcd.contraction_factor(self.r, self.alpha, self.beta)

    @property
    def delta(self) -> float:
        """δ = ((√(β/(Nα)) − 1)/(√(β/(Nα)) + 1))² of appendix F."""
        root = math.sqrt(self.most / (self.N * self.alpha))
        return ((root - 1) / (root + 1)) ** 2

    @property
    def lost(self) -> float:
        """The term missing in (10) for z = 0: (a² + b)/(2r²α)·‖y*‖² with b = a r² α/β; 0 without acceleration."""
        if not self.accelerated:
            return 0.0
        return feddcd.missing_term(self.a, self.r, self.alpha / self.beta, self.alpha, float(np.sum(self.y**2)))


@lru_cache(maxsize=4)
def theory(result: Result) -> Theory:
    """Compute the theory's quantities from the configuration of a run."""
    run = config.experiment(result.config)
    data = run.data.load(run.seed, "float64")
    X, y = data.rows(0, data.m)
    Q, b = np.asarray(X).reshape(data.m, data.n, data.n), np.asarray(y).reshape(data.m, data.n)
    w = np.linalg.solve(Q.mean(axis=0), b.mean(axis=0))
    spectrum = np.linalg.eigvalsh(Q)
    return Theory(
        accelerated=run.algorithm.label() == "accfeddcd",
        N=data.m,
        tau=run.selection.selector(run.seed, data.m, run.rounds).size,
        alpha=float(getattr(run.problem, "alpha", spectrum.min())),
        beta=float(spectrum.max()),
        most=float(getattr(run.data, "beta", spectrum.max())),
        w=w,
        y=Q @ w - b,
        f=float(-b.mean(axis=0) @ w / 2),
    )


TINY = 1e-9  # gaps below this share of the first one are rounding


def gap(result: Result) -> Array:
    """f − f*, nan from the first value that is rounding."""
    return above_rounding(np.asarray(result.rounds["objective"], float) - theory(result).f)


def dual_gap(result: Result) -> Array:
    """G(y) − G* = Σ f_i*(y_i) + N f*, nan from the first value that is rounding."""
    known = theory(result)
    return above_rounding(np.asarray(result.rounds["dual_objective"], float) + known.N * known.f)


def above_rounding(gaps: Array) -> Array:
    """Replace the gaps by nan from the first one that is at most TINY times gap 0."""
    below = gaps <= TINY * gaps[0]
    end = int(np.argmax(below)) if below.any() else len(gaps)
    return np.where(np.arange(len(gaps)) < end, gaps, np.nan)


def dual_ratio(result: Result) -> float:
    """The mean over the iterations of (G(y⁺) − G*)/(G(y) − G*); (3) bounds its expectation in every iteration."""
    found = dual_gap(result)
    end = int(np.count_nonzero(~np.isnan(found)))
    whole = np.asarray(result.rounds["dual_objective"], float) + theory(result).N * theory(result).f
    after = np.maximum(whole[1 : end + 1], 0)
    return float(np.mean(after / whole[: len(after)]))


def upper_rate(result: Result) -> float:
    """The guaranteed factor per iteration: 1 − r α/β by (3), 1 − a by (10)."""
    return theory(result).upper


def lower_rate(result: Result) -> float:
    """1 − (τ/N)(1 − δ) per exchange, the last equality before (14) in appendix F; its square for AccFedDCD."""
    known = theory(result)
    return float((1 - known.tau / known.N * (1 - known.delta)) ** known.exchanges)


def rate(result: Result) -> float:
    """The measured factor of f − f* per iteration, over the second half of the iterations above rounding."""
    found = gap(result)
    found = found[~np.isnan(found)]
    half = len(found) // 2
    return float((found[-1] / found[half]) ** (1 / max(len(found) - 1 - half, 1)))


def speed(result: Result) -> float:
    """−ln of the measured factor per iteration."""
    return -math.log(rate(result))


def promised_speed(result: Result) -> float:
    """−ln of the guaranteed factor per iteration."""
    return -math.log(upper_rate(result))


def possible_speed(result: Result) -> float:
    """−ln of the lower bound's factor per iteration."""
    return -math.log(lower_rate(result))


def guaranteed(result: Result) -> float:
    """The guaranteed speed divided by the measured one: at most 1 if a run is as fast as guaranteed."""
    return promised_speed(result) / speed(result)


def share(result: Result) -> float:
    """The measured speed divided by −ln δ^(τ/N) per exchange, the final speed of the bound in ``pathwise``."""
    known = theory(result)
    return -speed(result) / (known.exchanges * known.tau / known.N * math.log(known.delta))


def over_printed(result: Result) -> float:
    """The measured speed divided by that of (14) as printed, −ln(1 − min{4τ/√(Nβ/α), 8√2/(β/α), 1}) per exchange.

    A value above 1 is faster than (14) allows.
    """
    known = theory(result)
    condition = known.most / known.alpha
    least = min(4 * known.tau / math.sqrt(known.N * condition), 8 * math.sqrt(2) / condition, 1.0)
    return -speed(result) / (known.exchanges * math.log1p(-least)) if least < 1 else 0.0


def between(result: Result) -> float:
    """The possible speed divided by √N times the guaranteed one; by section 7 this does not depend on N."""
    return possible_speed(result) / promised_speed(result) / math.sqrt(theory(result).N)


def reach(result: Result) -> Array:
    """The number of leading coordinates of w that can be non-zero after every round; each exchange adds at most one.

    Only client k − 1 (mod N) has the block that leads from coordinate k to k + 1. The first client has two coordinates
    at once, so this is one more than K_t of appendix F.
    """
    run, known = config.experiment(result.config), theory(result)
    select = run.selection.selector(run.seed, known.N, run.rounds).select
    numbers, k = [1], 1
    for round in range(1, int(result.rounds["round"][-1]) + 1):
        for exchange in range(known.exchanges):
            selected = select(round, exchange)
            k += bool(selected is None or (k - 1) % known.N in selected)
        numbers.append(k)
    return np.array(numbers)


def pathwise(result: Result) -> float:
    """The largest (α/2) Σ_{j > k} (w*_j)² / (f − f*) with k of ``reach``: (43) for the clients selected in this run.

    At most 1.
    """
    known, found = theory(result), gap(result)
    tail = np.append(np.cumsum(known.w[::-1] ** 2)[::-1], 0.0)
    return float(np.nanmax(known.alpha / 2 * tail[np.minimum(reach(result), len(known.w))] / found))


def primal_bound(result: Result) -> float:
    """The largest f − f* divided by (β/2) times the bound of E‖w − w*‖²: (4), or (11) with the term missing in (10).

    (4): factor^t ‖y*‖²/(Nα²);  (11) corrected: factor^t (2/(Nα)) (‖y*‖²/(2α) + the missing term).
    """
    known, found = theory(result), gap(result)
    first = float(np.sum(known.y**2)) / (2 * known.alpha) + known.lost
    bound = feddcd.distance_bound(first, known.N, known.alpha, 1.0, 0) * factors(result)
    return float(np.nanmax(found[1:] / (known.beta / 2 * bound)))


def printed_bound(result: Result) -> float:
    """The largest (G(y) − G*)/(factor^t (G(0) − G*)) of the run: at most 1 by (3), or by (10) as printed."""
    found = dual_gap(result)
    return float(np.nanmax(found[1:] / (factors(result) * found[0])))


def corrected_bound(result: Result) -> float:
    """``printed_bound`` with the term missing in (10) added to G(0) − G*."""
    found = dual_gap(result)
    return float(np.nanmax(found[1:] / (factors(result) * (found[0] + theory(result).lost))))


def factors(result: Result) -> Array:
    """factor^t for t = 1, 2, …, never 0."""
    return np.maximum(theory(result).upper, 1e-300) ** np.arange(1, len(result.rounds["round"]))


MEASURES = {
    part.__name__: part
    for part in (
        dual_ratio,
        upper_rate,
        lower_rate,
        rate,
        speed,
        promised_speed,
        possible_speed,
        guaranteed,
        share,
        over_printed,
        between,
        pathwise,
        primal_bound,
        printed_bound,
        corrected_bound,
    )
}
COLUMNS = {"gap": gap, "dual_gap": dual_gap}


def gap_after_round_1(result: Result) -> float:
    """f − f* of the model after one round; nan where the run has none.

    The authors' trace has 0.019 for FedDCD on MNIST with τ = 30.
    """
    gaps = result.rounds.get("objective_gap")
    return float("nan") if gaps is None or len(gaps) < 2 else float(gaps[1])


MEASURES |= {gap_after_round_1.__name__: gap_after_round_1}
