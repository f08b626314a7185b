"""The iterates of a FedADMM run, computed again from its experiment file and its selections.

Theorem 3.1 is about every inner solve and Lemma 4.1 about every iteration, so the run's steps are repeated here,
independently of the algorithm's code.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from benchmarks.repeating import Clients, Key, agree, by_block, clients_of
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
    options, m = result.config["algorithm"], len(clients.ids)
    eps0 = options.get("eps0")
    W = [spread(clients.start, block).copy() for block in clients.blocks]
    if options["start"] == "zero":
        pi = [np.zeros_like(w) for w in W]
    else:
        pi = [-clients.problem.grad(block, w) / m for block, w in zip(clients.blocks, W, strict=True)]
    return State(W, pi, [np.full((len(w), 1), options["k0"] ** 2 if eps0 is None else eps0) for w in W])


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
