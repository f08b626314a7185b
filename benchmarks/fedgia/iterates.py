"""The iterates of a FedGiA run, computed again from its experiment file and its selections.

The result file has f and ‖∇f‖² at every aggregation. Lemma IV.1 is about the augmented Lagrangian at every iteration,
so the run's steps are repeated here, independently of the algorithm's code.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from benchmarks.repeating import Clients, Key, agree, by_block, clients_of
from mpifed import Result
from mpifed.algorithms import FedGiA
from mpifed.experiment.config import experiment
from mpifed.extend import Array
from mpifed.kernels.blocks import Block

ITERATIONS = 100  # of Lemma IV.1 are compared


class State(NamedTuple):
    """x_i and π_i of Algorithm 1, one array (clients of the block, n) for each block."""

    x: list[Array]
    pi: list[Array]


class Trace(NamedTuple):
    """The quantities of the lemma at iterations k = 0, 1, …, and the gradient in rounds s = 0, k0, …."""

    lagrangian: Array  # (K + 1,) L(Z^k)
    moved: Array  # (K,) ϖ_{k+1} of (24)
    above: Array  # (K,) f(x^{τ_k}) − L(Z^k)
    gradient: Array  # (K/k0,) ‖∇f(x^{τ_{s+1}})‖²
    state: State  # X^K and Π^K
    x: Array  # x^{τ_K}


def penalty(result: Result) -> float:
    """mσ = t r, with t of Table III if the experiment file has none."""
    clients, options = clients_of(result), cast(FedGiA, experiment(result.config).algorithm)
    logistic = clients.problem.logistic_loss
    t = max(0.025, 4 * math.log(clients.d) / len(clients.start)) if logistic else 0.15
    return (options.t or t) * clients.r


def trace(result: Result, most: int = ITERATIONS) -> Trace:
    """Repeat iterations of a run, in the notation of Algorithm 1. ValueError: f differs from the result file."""
    return repeat(Key(result), most)


@lru_cache(maxsize=64)
def repeat(key: Key, most: int) -> Trace:
    """Compute (11)–(17) and, at every iteration, (7) and (24)."""
    result, clients = key.result, clients_of(key.result)
    options, m = result.config["algorithm"], len(clients.ids)
    k0 = int(options["k0"])
    sigma = penalty(result) / m
    inverses = [inverse(clients.problem, block, options["H"], m, sigma) for block in clients.blocks]
    X = [np.tile(clients.start, (len(block), 1)) for block in clients.blocks]
    state = State(X, duals(result, clients, X))
    last = clients.start
    values = [lagrangian(clients, state, last, sigma)]
    moved: list[float] = []
    above: list[float] = []
    gradients: list[float] = []
    for round in range(1, min(result.cr, -(-most // k0)) + 1):
        x = sum((x + pi / sigma).sum(axis=0) for x, pi in zip(*state, strict=True)) / m  # (11)
        f, G = evaluate(clients, x)
        agree(f, float(result.rounds["objective"][round - 1]), round)
        gradients.append(float(np.square(sum(g.sum(axis=0) for g in G)).sum()))
        selected = by_block(clients, np.isin(clients.ids, result.selected(round)))
        for j in range(k0):
            before, state = state, step(state, x, G, selected, inverses, sigma)
            shift = sum(float(np.square(a - b).sum()) for a, b in zip(state.x, before.x, strict=True))
            moved.append(shift + (m * float(np.square(x - last).sum()) if j == 0 else 0.0))  # (24)
            values.append(lagrangian(clients, state, x, sigma))
            above.append(f - values[-1])
        last = x
    return Trace(np.array(values), np.array(moved), np.array(above), np.array(gradients), state, last)


def duals(result: Result, clients: Clients, X: list[Array]) -> list[Array]:
    """π_i⁰: 0, or −∇f_i(x⁰)/m, by block."""
    if result.config["algorithm"]["start"] == "zero":
        return [np.zeros_like(x) for x in X]
    return [-clients.problem.grad(block, x) / len(clients.ids) for block, x in zip(clients.blocks, X, strict=True)]


def evaluate(clients: Clients, x: Array) -> tuple[float, list[Array]]:
    """f(x), and ḡ_i = ∇f_i(x)/m by block."""
    f, G = 0.0, list[Array]()
    for block in clients.blocks:
        value, g = clients.problem.value_grad(block, np.broadcast_to(x, (len(block), len(x))))
        f += float(value.sum()) / len(clients.ids)
        G.append(g / len(clients.ids))
    return f, G


def step(
    state: State,
    x: Array,
    G: list[Array],
    selected: list[Array],
    inverses: list[Callable[[Array], Array]],
    sigma: float,
) -> State:
    """Take one iteration: (12), (13) for the selected clients, (15), (16) for the others."""
    new = State([], [])
    for g, pi, mine, invert in zip(G, state.pi, selected, inverses, strict=True):
        move = -invert(g + pi)
        new.x.append(np.where(mine, x + move, x))  # (12), (15)
        new.pi.append(np.where(mine, pi + sigma * move, -g))  # (13), (16)
    return new


def lagrangian(clients: Clients, state: State, x: Array, sigma: float) -> float:
    """L = Σ_i f_i(x_i)/m + ⟨x_i − x, π_i⟩ + (σ/2)‖x_i − x‖².  (7)"""
    total, m = 0.0, len(clients.ids)
    for block, x_i, pi_i in zip(clients.blocks, *state, strict=True):
        away = x_i - x
        total += (
            float(clients.problem.value(block, x_i).sum()) / m
            + float((away * pi_i).sum())
            + sigma / 2 * float(np.square(away).sum())
        )
    return total


def inverse(problem: Any, block: Block, H: str, m: int, sigma: float) -> Callable[[Array], Array]:
    """v -> (H_i/m + σI)⁻¹ v."""
    if H == "gram":
        return problem.majorizer_inverse(block, 1 / m, sigma)
    h = problem.lipschitz(block)[:, None] if H == "diagonal" else 0.0
    return lambda V: V / (h / m + sigma)
