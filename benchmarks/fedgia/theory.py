"""What the theorems of FedGiA say about a run: the bound of Theorem IV.3, the rate of Theorem IV.4, and Lemma IV.1.

The objective and ‖∇f‖² at every aggregation come from the result file. Lemma IV.1 is about the augmented Lagrangian at
every iteration, so the run's steps are repeated here, independently of the algorithm's code.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from benchmarks.fedepm.theory import gradients
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
from mpifed.algorithms import FedGiA
from mpifed.experiment.config import experiment
from mpifed.extend import Array
from mpifed.kernels.blocks import Block
from mpifed.theory import fedgia
from mpifed.theory import rates as fit
from mpifed.theory.fedgia import table_factor
from mpifed.theory.rates import FittedLine

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
    t = options.t or table_factor(clients.problem.logistic_loss, clients.d, len(clients.start))
    return t * clients.r


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
