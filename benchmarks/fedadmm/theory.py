"""What the theorems of FedADMM say about a run: Theorem 3.1, Lemma 4.1 and Theorem 4.1, from its iterates."""

import math
from functools import partial

import numpy as np

from benchmarks.fedadmm.iterates import constants, trace
from benchmarks.repeating import Stationarity, clients_of, gradients_left, optimality_left, stationarity
from mpifed import Array, Result


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
