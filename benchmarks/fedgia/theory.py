"""What the theorems of FedGiA say about a run: the bound of Theorem IV.3, the rate of Theorem IV.4, and Lemma IV.1.

The objective and ‖∇f‖² at every aggregation come from the result file, the augmented Lagrangian from ``iterates``.
"""

import math
from functools import partial

import numpy as np

from benchmarks.fedepm.theory import gradients
from benchmarks.fedgia.iterates import Trace, penalty, trace
from benchmarks.repeating import Clients, Stationarity, clients_of, gradients_left, optimality_left, stationarity
from mpifed import Result
from mpifed.extend import Array
from mpifed.theory import fedgia
from mpifed.theory import rates as fit
from mpifed.theory.rates import FittedLine

VISIBLE = 1e-9  # decreases of the Lagrangian below this share of L(Z⁰) − f* are rounding
HALF_TAIL = 1e-14  # the line is fitted to ‖∇f‖² down to this share, if f* is unknown


def least(result: Result) -> float:
    """f* if the run was given it, else 0, a lower bound of all losses used here."""
    return float(result.config["stop"].get("optimum", 0.0))


def start_gap(result: Result) -> float:
    """L(Z⁰) − f*. With x_i⁰ = x⁰, (7) equals f(x⁰): the objective in round 0 if π_i⁰ = 0."""
    zero = result.config["algorithm"]["start"] == "zero"
    return float(result.rounds["objective"][0] if zero else trace(result).lagrangian[0]) - least(result)


def lowest(result: Result) -> Array:
    """min over j in [k] of ‖∇f(x^{τ_j})‖² for k = R k0, by round R: x^{τ_j} is the model of rounds 0 … R − 1."""
    gradient = np.asarray(result.rounds["grad_norm_sq"], float)
    return np.concatenate([[np.nan], np.minimum.accumulate(gradient)[:-1]])


def bound(result: Result) -> Array:
    """Upper bound of ``lowest``: 100 m σ k0 (L(Z⁰) − f*)/k, which is 100 t r (L(Z⁰) − f*)/R.  (Theorem IV.3)"""
    R = np.asarray(result.rounds["round"], float)
    return np.concatenate([[np.nan], fedgia.gradient_bound(penalty(result), start_gap(result), R[1:])])


def ratios(result: Result) -> Array:
    """The lowest ‖∇f‖² so far divided by its bound, by round."""
    return lowest(result) / bound(result)


def ratio(result: Result) -> float:
    """The largest of ``ratios`` over all rounds: at most 1.  (Theorem IV.3)"""
    return float(np.nanmax(ratios(result)))


def descent(result: Result, first: bool) -> float:
    """The largest L(Z^{k+1}) − L(Z^k) + (σ/24) ϖ_{k+1}, divided by L(Z⁰) − f*: at most 0 by (23).  (Lemma IV.1 i)

    Over k >= 1; where ``first``, at k = 0, for which the proof needs π_i⁰ = −∇f_i(x⁰)/m.
    """
    found = trace(result)
    excess = np.diff(found.lagrangian) + penalty(result) / result.m / 24 * found.moved
    return float((excess[:1] if first else excess[1:]).max()) / start_gap(result)


def floor(result: Result) -> float:
    """The largest f(x^{τ_k}) − L(Z^k) over k >= 1, divided by L(Z⁰) − f*: at most 0.  (Lemma B.2 ii)"""
    return float(trace(result).above.max()) / start_gap(result)


def constant(result: Result) -> float:
    """The largest ‖∇f(x^{τ_{s+1}})‖²/(mσ (L(Z^s) − L(Z^{s+1}))) over s = k0, 2k0 …: at most 100 as printed.  (78)

    Rounds in which the Lagrangian decreases by no more than rounding are left out.
    """
    found, k0 = trace(result), int(result.config["algorithm"]["k0"])
    falls = -np.diff(found.lagrangian)[::k0][1:]
    visible = falls > VISIBLE * start_gap(result)
    if not visible.any():
        return math.nan
    return float((found.gradient[1:][visible] / falls[visible]).max()) / penalty(result)


def whole(result: Result) -> Trace:
    """All iterations of a run."""
    return trace(result, result.cr * int(result.config["algorithm"]["k0"]))


def apart(result: Result) -> float:
    """The largest difference of L, F(X) and f(x) at the end, divided by L(Z⁰) − f*: tends to 0.  (Theorem IV.1 i)"""
    found, clients = whole(result), clients_of(result)
    own = (clients.problem.value(block, x).sum() for block, x in zip(clients.blocks, found.state.x, strict=True))
    last = found.lagrangian[-1]
    values = [last, last + found.above[-1], sum(own) / len(clients.ids)]
    return float(max(values) - min(values)) / start_gap(result)


def ending(result: Result) -> Stationarity:
    """How far the last iterate is from a stationary point of (6)."""
    found = whole(result)
    return stationarity(clients_of(result), *found.state, found.x)


def line(result: Result) -> FittedLine:
    """Fit a line to log10(f − f*), or to log10 ‖∇f‖² if f* is unknown, between the shares ``fit.TAIL``."""
    optimum_given = "objective_gap" in result.rounds
    gap = np.asarray(result.rounds["objective_gap" if optimum_given else "grad_norm_sq"], float)
    return fit.fit_line(result.rounds["round"], gap, fit.TAIL[0], fit.TAIL[1] if optimum_given else HALF_TAIL)


def slope(result: Result) -> float:
    """Slope of log10(f − f*) per round, a negative number.  (Theorem IV.4 ii)"""
    return line(result).slope


def r2(result: Result) -> float:
    """R² of the line: 1 for an exactly linear rate.  (Theorem IV.4 ii)"""
    return line(result).r2


def off_the_line(result: Result) -> float:
    """1 − R²."""
    return 1 - line(result).r2


def descent_speed(result: Result) -> float:
    """The slope divided by that of gradient descent with step 1/(mσ), 2 log10(1 − λ_min(∇²f)/(t r)).

    With one gradient, each step (12)–(13) multiplies ḡ_i + π_i by H_i(H_i + mσI)⁻¹. After many steps (two if H_i = 0)
    selected clients upload the same as the others, (17), and the mean is x − ∇f(x)/(mσ).
    """
    clients = clients_of(result)
    smallest = float(np.linalg.eigvalsh(hessian(clients, result).mean(axis=0))[0])
    return slope(result) / (2 * math.log10(abs(1 - smallest / penalty(result))))


def slack(result: Result) -> float:
    """log(ρ/(ρ + 1)) divided by the log of the measured factor of f − f* per round: at most 1.  (Theorem IV.4 ii)

    ρ = 24 m c (2σ + 1)²/σ, with c the constant of the KL inequality L − L* <= c ‖∇L‖² of the Lagrangian at the limit:
    c = 1/(2λ), λ the least positive eigenvalue of its Hessian, which (54) gives. Exact for quadratic f_i.
    """
    clients = clients_of(result)
    m = len(clients.ids)
    sigma = penalty(result) / m
    factor = fedgia.rate_factor(m, sigma, fedgia.steepness(hessian(clients, result), sigma))
    return math.log(factor) / (slope(result) * math.log(10))


def hessian(clients: Clients, result: Result) -> Array:
    """∇²f_i at the final model: (m, n, n)."""
    n = len(clients.start)
    parts = []
    for block in clients.blocks:
        times = clients.problem.hessian(block, np.tile(result.x, (len(block), 1)))  # type: ignore[arg-type]
        parts.append(np.stack([times(np.tile(row, (len(block), 1))) for row in np.eye(n)], axis=1))
    return np.concatenate(parts)


MEASURES = {
    "measured_over_bound": ratio,
    "lemma_excess": partial(descent, first=False),
    "lemma_excess_at_0": partial(descent, first=True),
    "f_less_lagrangian": floor,
    "constant_of_78": constant,
    "values_apart": apart,
    "gradients_left": partial(gradients_left, ending),
    "optimality_left": partial(optimality_left, ending),
    "digits_a_round": slope,
    "r2": r2,
    "off_the_line": off_the_line,
    "digits_over_gradient_descent": descent_speed,
    "theorem_over_measured": slack,
    "gradients": gradients,
}
COLUMNS = {"lowest_gradient": lowest, "bound": bound, "measured_over_bound": ratios}
