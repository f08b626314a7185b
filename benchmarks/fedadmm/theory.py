"""What the theorems of FedADMM say about a run, from its iterates: Theorems 3.1 and 4.1, Lemma 4.1; and (5.1)."""

import math
from functools import partial

import numpy as np

from benchmarks.fedadmm.iterates import constants, trace
from benchmarks.repeating import Stationarity, clients_of, gradients_left, optimality_left, stationarity
from mpifed import Result
from mpifed.extend import Array


def gap(result: Result) -> float:
    """f(w⁰) − f*; f* is 0, a lower bound of the losses used here, where it is unknown."""
    return float(trace(result).objective[0]) - float(result.config["stop"].get("optimum", 0.0))


def condition(result: Result) -> float:
    """The least σ_i/(α_i r_i): above 5/2 for Theorem 4.1, above 1/2 (convex f_i) for Theorem 3.1."""
    return min(float((part.sigma / part.r).min()) for part in constants(result))


def inner(result: Result) -> float:
    """Steps (3.12) of an inner solve divided by κ + 1 of (3.13), the largest: at most 1.  (Theorem 3.1)

    nan if ϱ <= 1, or if an inner solve ended by ``inner_max`` before (3.5) held.
    """
    return math.nan if unmet(result) > 1 else trace(result).steps


def unmet(result: Result) -> float:
    """The largest ‖φ_i‖²/ε_i after an inner solve: at most 1 where (3.5) holds."""
    return float(trace(result).inexact.max())


def excess(result: Result) -> Array:
    """𝓛̃^{k+1} − 𝓛̃^k + (σ/2)‖Δw^τ‖² + (c/4)Σ‖Δw_i‖², divided by f(w⁰) − f*, by k: at most 0.  (Lemma 4.1)"""
    found = trace(result)
    tilde = found.lagrangian + found.slack
    return (np.diff(tilde) + found.promised) / gap(result)


def lemma(result: Result) -> float:
    """The largest ``excess`` over k >= 1."""
    return float(excess(result)[1:].max())


def lemma_first(result: Result) -> float:
    """``excess`` at k = 0, where the proof needs ‖α_i∇f_i(w⁰) + π_i⁰‖² <= ε_i⁰."""
    return float(excess(result)[0])


def below(result: Result) -> float:
    """The largest f(w^{τ_k}) − 𝓛̃^k over k >= 1, divided by f(w⁰) − f*: at most 0.  (Lemma 7.2 b)"""
    found = trace(result)
    return float((found.objective - found.lagrangian - found.slack)[1:].max()) / gap(result)


def rises(result: Result) -> float:
    """The largest rise of 𝓛̃ over k >= 0, divided by f(w⁰) − f*: at most 0.  (Lemma 7.2 a)"""
    found = trace(result)
    return float(np.diff(found.lagrangian + found.slack).max()) / gap(result)


def apart(result: Result) -> float:
    """The largest difference of 𝓛, F(W) and f(w) at the end, divided by f(w⁰) − f*: tends to 0.  (Theorem 4.1 b)"""
    found = trace(result)
    last = found.lagrangian[-1], found.total[-1], found.objective[-1]
    return float(max(last) - min(last)) / gap(result)


def ending(result: Result) -> Stationarity:
    """How far the last repeated iterate is from (4.1)."""
    found = trace(result)
    return stationarity(clients_of(result), found.state.w, found.state.pi, found.w)


MEASURES = {
    "sigma_over_r": condition,
    "steps_over_bound": inner,
    "inexactness": unmet,
    "lemma_excess": lemma,
    "lemma_excess_at_0": lemma_first,
    "rise_of_lagrangian": rises,
    "f_less_lagrangian": below,
    "values_apart": apart,
    "gradients_left": partial(gradients_left, ending),
    "optimality_left": partial(optimality_left, ending),
}


def tolerance(result: Result) -> float:
    """The largest ‖∇f‖² that meets the stop rule, with the run's own m and d.  Source: fedadmm, (5.1).

    5e-4 n/d as printed; c n/d in the program of 2022, c = 5e-5 for linear and 1e-5 for logistic regression: the least
    of the two that is not below stop.gradient, which stands for the largest m. The program of 2023, which alone has
    gradient_relative, tests ‖∇f‖²/m² against c n/(m d), c = 2e-3 or 5e-7: min{c n m/d, 0.2 ‖∇f(x⁰)‖²}.
    """
    if result.x is None:
        return 0.0
    m, n = result.m, len(result.x)
    d = float(np.sum(result.clients["samples"]))
    linear = result.config["problem"]["name"] == "least-squares"
    stop = result.config["stop"]
    if stop["gradient_relative"]:
        return min((2e-3 if linear else 5e-7) * n * m / d, 0.2 * float(result.rounds["grad_norm_sq"][0]))
    known = [(5e-5 if linear else 1e-5) * n / d, 5e-4 * n / d]
    return min((bound for bound in known if bound > 0.99 * stop["gradient"]), default=stop["gradient"])


def reached(result: Result) -> int:
    """The first round with ‖∇f‖² at most ``tolerance``, or the last round.  Source: fedadmm, (5.1)."""
    met = np.asarray(result.rounds["grad_norm_sq"]) <= tolerance(result)
    return int(np.argmax(met)) if met.any() else len(met) - 1


def rounds_to_tolerance(result: Result) -> float:
    """CR: rounds until (5.1) holds with the run's own m and d, or all rounds.  Source: fedadmm, Figure 4."""
    return float(result.rounds["round"][reached(result)])


def seconds_to_tolerance(result: Result) -> float:
    """Elapsed seconds until (5.1) holds with the run's own m and d, or until the end.  Source: fedadmm, Figure 4."""
    return float(result.rounds["elapsed_seconds"][reached(result)])


def rounds_left(result: Result) -> float:
    """The round limit minus the rounds run: 0 if the run hit the limit.  Source: fedadmm, section 5.4 a), b)."""
    return float(result.config["rounds"] - result.cr)


MEASURES |= {
    "rounds_to_tolerance": rounds_to_tolerance,
    "seconds_to_tolerance": seconds_to_tolerance,
    "rounds_left": rounds_left,
}
