"""What the theorems of FedEPM say about a run: the exact penalty of Theorem III.1 and the descent of Lemma VI.1.

The penalised problem (7) is solved here, independently of the algorithm's code. Runs have no noise.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from benchmarks.fedepm.iterates import Setting, evaluate, penalty, setting, soft, trace
from benchmarks.repeating import Key
from mpifed import Array, Result
from mpifed.theory import fedepm

INNER = 400  # most proximal gradient steps for each f_i + φ(· − w)
STILL = 1e-13  # they end where no entry moves by more than this share of the largest


def envelope(s: Setting, w: Array, start: Array) -> tuple[float, Array, Array]:
    """min over W of F(w, W), its gradient Σ ∇f_i(w_i) in w, and W, by accelerated proximal gradient steps."""
    r = s.known.r[s.ids][:, None]  # type: ignore[index]
    W, Y = start, start
    for k in range(INNER):
        V = Y - evaluate(s, Y)[1] / r - w
        new = w + soft(V, s.lam / r) / (1 + s.eta / r)
        moved = float(np.abs(new - W).max())
        Y = new + (k % 50) / (k % 50 + 3) * (new - W)
        W = new
        if moved <= STILL * float(np.abs(W).max()):
            break
    f, g = evaluate(s, W)
    return float(np.sum(f + penalty(s, W - w))), g.sum(axis=0), W


@lru_cache(maxsize=8)
def penalised(key: Key) -> tuple[float, Array]:
    """The minimum of (7) and the w where it is attained, from x⁰ by L-BFGS on the envelope."""
    s = setting(key)
    W = np.tile(s.first, (len(s.ids), 1))

    def F(w: Array) -> tuple[float, Array]:
        nonlocal W
        value, gradient, W = envelope(s, w, W)
        return value, gradient

    found = minimize(F, s.first, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 0.0, "gtol": 1e-10})
    return float(found.fun), found.x


def ratio(result: Result) -> float:
    """λ/λ*, with λ* of (11): at least 1 where Theorem III.1 speaks."""
    s = setting(Key(result))
    return s.lam / s.known.largest


def threshold(result: Result) -> float:
    """λ* = max |(∇f_i(w*))_j|.  (11)"""
    return setting(Key(result)).known.largest


def residual(result: Result) -> float:
    """How far (w*, W*) is from (10): the largest |(∇f_i(w*))_j| − λ, or 0, divided by λ*.  (Theorem III.1)"""
    s = setting(Key(result))
    return max(0.0, s.known.largest - s.lam) / s.known.largest


def penalised_error(result: Result) -> float:
    """‖w − x*‖/‖x⁰ − x*‖ for the w that minimises (7): 0 where the penalty is exact."""
    s = setting(Key(result))
    return float(np.linalg.norm(penalised(Key(result))[1] - s.x)) / math.sqrt(s.known.distance)


def closed(result: Result) -> float:
    """The share of f(x⁰) − f* that the run has closed."""
    f, s = np.asarray(result.rounds["objective"], float), setting(Key(result))
    return float((f[0] - f[-1]) / (f[0] - s.known.f))


def unmoved(result: Result) -> float:
    """1 − ``closed``."""
    return 1 - closed(result)


def scale(result: Result) -> float:
    """m (f(x⁰) − f*), by which the measures of Lemma VI.1 are divided."""
    s = setting(Key(result))
    return len(s.ids) * (s.known.f0 - s.known.f)


def growths(result: Result) -> Array:
    """Σ r_i²/(2 μ_{i,0} c α^{k+1}), by iteration.  (32)"""
    s, count = setting(Key(result)), len(trace(Key(result)).shifted)
    r = s.known.r[s.ids]  # type: ignore[index]
    first = fedepm.growth_bound(s.mu[:, 0], s.options.c, s.options.alpha, r)
    return first / s.options.alpha ** np.arange(count)


def excess(result: Result) -> float:
    """The largest left side of (32) less its right side: at most 0.  (Lemma VI.1)"""
    s, found = setting(Key(result)), trace(Key(result))
    r = s.known.r[s.ids]  # type: ignore[index]
    steps = np.sum((found.mu + s.eta - r) / 2 * found.moved, axis=1)
    right = growths(result) - steps - len(s.ids) * s.eta / 4 * found.shifted
    return float((np.diff(found.F) - right).max()) / scale(result)


def allowed(result: Result) -> float:
    """What (32) allows F to grow by in its first iteration, divided by m (f(x⁰) − f*)."""
    return float(growths(result)[0]) / scale(result)


def rise(result: Result) -> float:
    """The largest rise of F in an iteration, divided by m (f(x⁰) − f*): F need not fall."""
    return float(np.diff(trace(Key(result)).F).max()) / scale(result)


def last_step(result: Result) -> float:
    """Σ ‖w_i^{k+1} − w_i^k‖² in the last iteration, divided by the largest: 0 in the limit.  (Theorem VI.1 ii)"""
    moved = trace(Key(result)).moved.sum(axis=1)
    return float(moved[-1] / moved.max()) if moved.any() else 0.0


def above_penalised(result: Result) -> float:
    """F at the end less the minimum of (7), divided by m (f(x⁰) − f*): 0 if the run had found a solution of (7)."""
    return (float(trace(Key(result)).F[-1]) - penalised(Key(result))[0]) / scale(result)


MEASURES = {
    "lam_over_threshold": ratio,
    "threshold": threshold,
    "residual_of_10": residual,
    "penalised_error": penalised_error,
    "gap_closed": closed,
    "gap_left": unmoved,
    "lemma_excess": excess,
    "growth_allowed": allowed,
    "largest_rise": rise,
    "last_step": last_step,
    "above_penalised": above_penalised,
}
