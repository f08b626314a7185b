"""What the theorems of FedADMM say about a run: Theorems 3.1 and 4.1, Lemma 4.1; and when it meets (5.1).

Theorem 3.1 is about every inner solve and Lemma 4.1 about every iteration, so the run's steps are repeated here,
independently of the algorithm's code.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from benchmarks.repeating import (
    Clients,
    Key,
    Stationarity,
    agree,
    by_block,
    clients_of,
    duals,
    gradients_left,
    optimality_left,
    stationarity,
)
from mpifed import Result
from mpifed.extend import Array
from mpifed.kernels.blocks import Block
from mpifed.theory.fedadmm import contraction, descent

ITERATIONS = 2000  # most iterations that are repeated
SOLVES = 100  # most iterations whose inner solves are compared with Theorem 3.1
ENOUGH = 500  # most steps (3.12) to v_i*
NEAR = 1e-13  # of v_i*: the residual, as a share of ‖π_i‖ + σ_i‖w‖


class Trace(NamedTuple):
    """The quantities of the theorems at k = 0, 1, …; ``steps`` of (3.12) at most, as a share of κ + 1 of (3.13)."""

    lagrangian: Array  # (K + 1,) 𝓛^k of section 4.3
    slack: Array  # (K + 1,) the terms in ε_i^k, which 𝓛̃^k of (4.4) adds
    promised: Array  # (K,) the right-hand side of Lemma 4.1
    inexact: Array  # (K,) the largest ‖φ_i‖²/ε_i of (3.5)
    objective: Array  # (K + 1,) f(w^{τ_k})
    total: Array  # (K + 1,) F(W^k)
    steps: float
    state: State
    w: Array


class State(NamedTuple):
    """w_i, π_i (clients of the block, n) and ε_i (clients of the block, 1), one array for each block."""

    w: list[Array]
    pi: list[Array]
    eps: list[Array]


class Constants(NamedTuple):
    """α_i r_i and σ_i (clients of the block, 1) of a block, ϱ of Theorem 3.1, ν and the most inner steps."""

    r: Array
    sigma: Array
    rho: float
    nu: float
    most: int


def constants(result: Result) -> list[Constants]:
    """The constants of each block. ϱ is the largest with σ_i >= α_i s_i + ϱ α_i r_i/2, s_i = 0 or, not convex, r_i."""
    clients, options = clients_of(result), result.config["algorithm"]
    convex = "nonconvex" not in result.config["problem"]["name"]
    found = []
    for block in clients.blocks:
        r = clients.problem.lipschitz(block)[:, None] / len(clients.ids)
        sigma = options["r0"] * r
        rho = contraction(sigma, r, 0 * r if convex else r)
        found.append(Constants(r, sigma, rho, options["nu"], options["inner_max"]))
    return found


def trace(result: Result) -> Trace:
    """Repeat the iterations of a run, in the notation of Algorithm 1. ValueError: f differs from the result file."""
    return repeat(Key(result))


@lru_cache(maxsize=64)
def repeat(key: Key) -> Trace:
    """Compute (3.3)–(3.8) and, at every iteration, (3.9), (4.4) and the bound of Lemma 4.1."""
    result = key.result
    clients = clients_of(result)
    parts = constants(result)
    k0 = int(result.config["algorithm"]["k0"])
    state = first(result, clients)
    w = clients.start
    rows = [values(clients, parts, state, w)]
    promised: list[float] = []
    inexact: list[float] = []
    steps = 0.0
    c = min(descent(p.sigma, p.r) for p in parts)
    total = sum(float(p.sigma.sum()) for p in parts)
    for round in range(1, min(result.cr, -(-ITERATIONS // k0)) + 1):
        z = sum((p.sigma * wi + pi).sum(axis=0) for p, wi, pi in zip(parts, state.w, state.pi, strict=True))
        last, w = w, z / total  # (3.3)
        f = sum(float(clients.problem.value(block, spread(w, block)).sum()) for block in clients.blocks)
        agree(f / len(clients.ids), float(result.rounds["objective"][round - 1]), round)
        selected = by_block(clients, np.isin(clients.ids, result.selected(round)))
        for j in range(k0):
            before = state
            state, off, share = iterate(clients, parts, state, w, selected, len(promised) < SOLVES)
            moved = sum(float(np.square(a - b).sum()) for a, b in zip(state.w, before.w, strict=True))
            promised.append(c / 4 * moved + (total / 2 * float(np.square(w - last).sum()) if j == 0 else 0.0))
            inexact.append(off)
            steps = float(np.fmax(steps, share))
            rows.append(values(clients, parts, state, w))
    augmented, slack, objective, own = np.array(rows).T
    return Trace(augmented, slack, np.array(promised), np.array(inexact), objective, own, steps, state, w)


def first(result: Result, clients: Clients) -> State:
    """w_i = w⁰, π_i = 0 or −α_i∇f_i(w⁰), ε_i = eps0 or k0²."""
    options = result.config["algorithm"]
    eps0 = options.get("eps0")
    W = [spread(clients.start, block).copy() for block in clients.blocks]
    eps = options["k0"] ** 2 if eps0 is None else eps0
    return State(W, duals(result, clients, W), [np.full((len(w), 1), eps) for w in W])


def spread(w: Array, block: Block) -> Array:
    """The same model for all clients of a block: (c, n)."""
    return np.broadcast_to(w, (len(block), len(w)))


def iterate(
    clients: Clients, parts: list[Constants], state: State, w: Array, selected: list[Array], compare: bool
) -> tuple[State, float, float]:
    """One iteration (3.4)–(3.8); the largest ‖φ_i‖²/ε_i and, to ``compare``, steps as a share of Theorem 3.1's."""
    new = State([], [], [])
    off = share = 0.0
    for block, p, wi, pi, eps, mine in zip(clients.blocks, parts, *state, selected, strict=True):
        target = np.where(mine, p.nu * eps, eps)  # (3.4)
        v, taken, residual = solve(clients, block, p, w, pi, target)
        new.w.append(np.where(mine, v, wi))  # (3.5), (3.8)
        new.pi.append(np.where(mine, pi + p.sigma * (v - w), pi))  # (3.6), (3.8)
        new.eps.append(target)
        if mine.any():
            off = max(off, float((residual / target)[mine].max()))
        if compare and mine.any():
            share = np.fmax(share, float((taken / allowed(clients, block, p, w, pi, target))[mine].max()))
    return new, off, share


def solve(clients: Clients, block: Block, p: Constants, w: Array, pi: Array, eps: Array) -> tuple[Array, Array, Array]:
    """Steps (3.12) from w until (3.5) holds, at most ``p.most``: v_i (c, n), the steps and the residuals (c, 1)."""
    m = len(clients.ids)
    v = spread(w, block).copy()
    far = np.ones((len(block), 1), bool)
    taken = np.zeros((len(block), 1))
    residual = np.full((len(block), 1), math.inf)
    g = clients.problem.grad(block, v) / m
    for _ in range(p.most):
        v = np.where(far, (p.r * v + p.sigma * w - (g + pi)) / (p.r + p.sigma), v)  # (3.12)
        g = clients.problem.grad(block, v) / m
        residual = np.square(g + pi + p.sigma * (v - w)).sum(axis=1, keepdims=True)
        taken += far
        far = far & (residual > eps)
        if not far.any():
            break
    return v, taken, residual


def allowed(clients: Clients, block: Block, p: Constants, w: Array, pi: Array, eps: Array) -> Array:
    """κ + 1 of (3.13), rounded up and at least 1: (c, 1). nan where ϱ <= 1, which the theorem excludes."""
    if p.rho <= 1:
        return np.full_like(eps, math.nan)
    size = np.sqrt(np.square(pi).sum(axis=1, keepdims=True)) + p.sigma * np.sqrt(w @ w)
    best = solve(clients, block, p._replace(most=ENOUGH), w, pi, np.square(NEAR * size))[0]
    away = 2 * (p.r**2 + p.sigma**2) * np.square(best - w).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.maximum(np.ceil(np.log(away / eps) / math.log(p.rho)), 1)


def values(clients: Clients, parts: list[Constants], state: State, w: Array) -> Array:
    """𝓛 of (3.9), the terms in ε_i of (4.4), f(w) and F(W)."""
    m, total = len(clients.ids), np.zeros(4)
    for block, p, wi, pi, eps in zip(clients.blocks, parts, *state, strict=True):
        away, own = wi - w, float(clients.problem.value(block, wi).sum()) / m
        total += (
            own + float((away * pi).sum()) + float((p.sigma / 2 * np.square(away)).sum()),
            float((weights(p.sigma, p.r, p.nu) * eps).sum()),
            float(clients.problem.value(block, spread(w, block)).sum()) / m,
            own,
        )
    return total


def weights(sigma: Array, r: Array, nu: float) -> Array:
    """ν/((1 − ν)α_i r_i) + 10(1 + ν)/(σ_i(1 − ν)): what ε_i^k is multiplied by in L̃^k.  (Lemma 4.1)"""
    return nu / ((1 - nu) * r) + 10 * (1 + nu) / (sigma * (1 - nu))


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
