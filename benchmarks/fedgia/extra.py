"""What the theorems of FedGiA say of a run: the bound of Theorem IV.3, the linear rate of Theorem IV.4, and Lemma IV.1.

The record has f and ‖∇f‖² at every aggregation. What the lemma speaks of, the augmented Lagrangian at every iteration, is
worked out here by taking the run's steps again from its experiment file and its selections, in formulas of its own.
"""

from __future__ import annotations

import math
import tomllib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.blocks import Block
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.run import check
from mpifed.federation.host import Host
from mpifed.problems.base import Problem
from mpifed.results.result import Result

SAME = 1e-8  # relative difference of f, here and in the record, that rounding explains
WALK = 100  # iterations of a run that are taken again
SEEN = 1e-9  # steps of the Lagrangian below this share of L(Z⁰) − f* are taken for rounding
TAIL = (1e-2, 1e-9)  # the line is fitted to gaps between these shares of the first gap
HALF_TAIL = 1e-14  # and to ‖∇f‖² down to this share, where f* is not known


class World(NamedTuple):
    """The clients of a run in memory: ``ids`` (m,) in the order of the blocks, d samples, r = max r_i."""

    problem: Problem
    blocks: list[Block]
    ids: Array
    start: Array
    d: int
    r: float


class Trace(NamedTuple):
    """Of iterations k = 0 …: L(Z^k), ϖ_{k+1} of (24), f(x^{τ_k}) − L(Z^k); of rounds s = 0, k0 …: ‖∇f(x^{τ_{s+1}})‖²."""

    lagrangian: Array  # (K + 1,)
    moved: Array  # (K,)
    above: Array  # (K,)
    gradient: Array  # (K/k0,)


def world(result: Result) -> World:
    """The clients of a run."""
    return load(experiment({key: result.config[key] for key in ("seed", "dtype", "data", "problem")}).toml())


@lru_cache(maxsize=32)
def load(text: str) -> World:
    """Those of an experiment file."""
    config: Experiment = experiment(tomllib.loads(text))
    data = config.data.load(config.seed, config.dtype)
    start = check(config, data, 1)
    host = Host(data, config.problem, config.algorithm, 0, data.m, start, config.dtype, config.seed)
    r = max(float(config.problem.lipschitz(block).max()) for block in host.blocks)
    return World(config.problem, host.blocks, host.ids, start, int(np.sum(data.sizes)), r)


def penalty(result: Result) -> float:
    """mσ = t r, with t of Table III where the experiment file has none."""
    clients, t = world(result), result.config["algorithm"].get("t")
    if t is None:
        logistic = "logistic" in result.config["problem"]["name"]
        t = max(0.025, 4 * math.log(clients.d) / len(clients.start)) if logistic else 0.15
    return float(t) * clients.r


def least(result: Result) -> float:
    """f*, where the run was given it; else 0, below which no loss of these problems falls."""
    return float(result.config["stop"].get("optimum", 0.0))


def start_gap(result: Result) -> float:
    """L(Z⁰) − f*: with x_i⁰ = x⁰ and π_i⁰ = 0, (7) is f(x⁰), row 0 of the record."""
    return float(result.rounds["objective"][0]) - least(result)


def lowest(result: Result) -> Array:
    """min over j in [k] of ‖∇f(x^{τ_j})‖² with k = R k0, by R: x^{τ_j} is the model of rows 0 … R − 1."""
    gradient = np.asarray(result.rounds["grad_norm_sq"], float)
    return np.concatenate([[np.nan], np.minimum.accumulate(gradient)[:-1]])


def bound(result: Result) -> Array:
    """The bound on it, 100 m σ k0 (L(Z⁰) − f*)/k with k = R k0 and σ = t r/m: 100 t r (L(Z⁰) − f*)/R.  (Theorem IV.3)"""
    R = np.asarray(result.rounds["round"], float)
    return np.concatenate([[np.nan], 100 * penalty(result) * start_gap(result) / R[1:]])


def ratios(result: Result) -> Array:
    """The lowest ‖∇f‖² over its bound, by round."""
    return lowest(result) / bound(result)


def ratio(result: Result) -> float:
    """The greatest ratio of measured to bound over all rounds: at most 1.  (Theorem IV.3)"""
    return float(np.nanmax(ratios(result)))


def trace(result: Result) -> Trace:
    """The iterations of a run once more, in the notation of Algorithm 1; refuses to speak of other iterates."""
    return again(Key(result))


class Key:
    """A result, told from others by the object: runs are walked through once for all measures."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def __hash__(self) -> int:
        return hash(id(self.result))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.result is self.result


@lru_cache(maxsize=64)
def again(key: Key) -> Trace:
    """(11)–(17) and, at every iteration, (7) and (24)."""
    result, clients = key.result, world(key.result)
    m, k0, H = len(clients.ids), int(result.config["algorithm"]["k0"]), result.config["algorithm"]["H"]
    sigma = penalty(result) / m
    X = [np.tile(clients.start, (len(block), 1)) for block in clients.blocks]
    pi = [np.zeros_like(x) for x in X]
    edges = np.cumsum([0, *map(len, clients.blocks)])
    old, values, moved, above, gradient = clients.start, [], [], [], []
    values.append(lagrangian(clients, X, pi, old, sigma))
    for round in range(1, min(result.cr, -(-WALK // k0)) + 1):
        x = sum((x + p / sigma).sum(axis=0) for x, p in zip(X, pi, strict=True)) / m  # (11)
        f = 0.0
        G: list[Array] = []
        for block in clients.blocks:
            value, g = clients.problem.value_grad(block, np.broadcast_to(x, (len(block), len(x))))
            f, G = f + float(value.sum()) / m, [*G, g / m]
        if not abs(f - (row := float(result.rounds["objective"][round - 1]))) <= SAME * max(1.0, abs(row)):
            raise ValueError(
                f"the steps of round {round} are not those of the run: f = {f!r} here and {row!r} in its record"
            )
        gradient.append(float(np.square(sum(g.sum(axis=0) for g in G)).sum()))
        mask = np.zeros(m, bool)
        mask[result.selected(round)] = True
        for j in range(k0):
            before = [x_i.copy() for x_i in X]
            for b, block in enumerate(clients.blocks):
                picks = mask[clients.ids[edges[b] : edges[b + 1]]]
                step = -inverse(clients.problem, block, H, m, sigma)(G[b] + pi[b])  # (12)
                X[b] = np.where(picks[:, None], x + step, x)  # (12), (15)
                pi[b] = np.where(picks[:, None], pi[b] + sigma * step, -G[b])  # (13), (16)
            shift = sum(float(np.square(a - b).sum()) for a, b in zip(X, before, strict=True))
            moved.append(shift + (m * float(np.square(x - old).sum()) if j == 0 else 0.0))  # (24)
            values.append(lagrangian(clients, X, pi, x, sigma))
            above.append(f - values[-1])
        old = x
    return Trace(np.array(values), np.array(moved), np.array(above), np.array(gradient))


def lagrangian(clients: World, X: list[Array], pi: list[Array], x: Array, sigma: float) -> float:
    """L = Σ_i f_i(x_i)/m + ⟨x_i − x, π_i⟩ + (σ/2)‖x_i − x‖².  (7)"""
    total, m = 0.0, len(clients.ids)
    for block, x_i, pi_i in zip(clients.blocks, X, pi, strict=True):
        away = x_i - x
        total += (
            float(clients.problem.value(block, x_i).sum()) / m
            + float((away * pi_i).sum())
            + sigma / 2 * float(np.square(away).sum())
        )
    return total


def inverse(problem: Any, block: Block, H: str, m: int, sigma: float) -> Any:
    """v -> (H_i/m + σI)⁻¹ v."""
    if H == "gram":
        return problem.majorizer_inverse(block, 1 / m, sigma)
    h = problem.lipschitz(block)[:, None] if H == "diagonal" else 0.0
    return lambda V: V / (h / m + sigma)


def descent(result: Result, first: bool) -> float:
    """The greatest L(Z^{k+1}) − L(Z^k) + (σ/24) ϖ_{k+1} over L(Z⁰) − f*: at most 0 by (23).  (Lemma IV.1 i)"""
    found = trace(result)
    excess = np.diff(found.lagrangian) + penalty(result) / result.m / 24 * found.moved
    return float((excess[:1] if first else excess[1:]).max()) / start_gap(result)


def descent_later(result: Result) -> float:
    """Of the iterations k >= 1."""
    return descent(result, False)


def descent_first(result: Result) -> float:
    """Of k = 0, from π_i⁰ = 0."""
    return descent(result, True)


def floor(result: Result) -> float:
    """The greatest f(x^{τ_k}) − L(Z^k), k >= 1, over L(Z⁰) − f*: at most 0.  (Lemma B.2 ii)"""
    return float(trace(result).above.max()) / start_gap(result)


def constant(result: Result) -> float:
    """The greatest ‖∇f(x^{τ_{s+1}})‖²/(mσ (L(Z^s) − L(Z^{s+1}))), s = k0, 2k0 …: printed at most 100.  (78)

    Only where the Lagrangian falls by more than rounding.
    """
    found, k0 = trace(result), int(result.config["algorithm"]["k0"])
    falls = -np.diff(found.lagrangian)[::k0][1:]
    seen = falls > SEEN * start_gap(result)
    if not seen.any():
        return math.nan
    return float((found.gradient[1:][seen] / falls[seen]).max()) / penalty(result)


class Line(NamedTuple):
    """The line through log10 of a gap over the rounds: how much it falls a round, and R²."""

    slope: float
    r2: float


def line(result: Result) -> Line:
    """Least squares through log10(f − f*), or log10 ‖∇f‖² where f* is not known, between the shares TAIL of the first."""
    rounds = np.asarray(result.rounds["round"], float)
    known = "objective_gap" in result.rounds
    gap = np.asarray(result.rounds["objective_gap" if known else "grad_norm_sq"], float)
    low = TAIL[1] if known else HALF_TAIL
    below = np.flatnonzero(gap <= TAIL[0] * gap[0])
    over = np.flatnonzero(gap <= low * gap[0])
    if not len(below):
        return Line(math.nan, math.nan)
    part = slice(below[0], over[0] if len(over) else len(gap))
    x, y = rounds[part], np.log10(gap[part])
    if len(x) < 3:
        return Line(math.nan, math.nan)
    slope, shift = np.polyfit(x, y, 1)
    rest = y - (slope * x + shift)
    return Line(float(slope), float(1 - rest.var() / y.var()))


def slope(result: Result) -> float:
    """Decimal digits of f − f* a round, a negative number.  (Theorem IV.4 ii)"""
    return line(result).slope


def r2(result: Result) -> float:
    """R² of the line: 1 for a linear rate.  (Theorem IV.4 ii)"""
    return line(result).r2


def off_the_line(result: Result) -> float:
    """1 − R²."""
    return 1 - line(result).r2


def descent_speed(result: Result) -> float:
    """The digits a round over those of gradient descent with step 1/(mσ), −2 log10(1 − λ_min(∇²f)/(t r)).

    (12)–(13) with one gradient make ḡ_i + π_i smaller by the factor H_i(H_i + mσI)⁻¹ a step, so that after many steps (after
    two where H_i = 0) chosen clients upload what the others do, (17), and the mean is x − ∇f(x)/(mσ).
    """
    clients = world(result)
    smallest = float(np.linalg.eigvalsh(hessian(clients, result).mean(axis=0))[0])
    return slope(result) / (2 * math.log10(abs(1 - smallest / penalty(result))))


def slack(result: Result) -> float:
    """log(ρ/(ρ + 1)) over the log of the measured factor of f − f* a round: at most 1.  (Theorem IV.4 ii)

    ρ = 24 m c (2σ + 1)²/σ. Here c is that of the Lagrangian's own KL inequality L − L* <= c ‖∇L‖² at the limit: 1/(2λ) with λ
    the least positive eigenvalue of its Hessian, which (54) gives; exact where f_i are quadratic.
    """
    clients = world(result)
    Q, m = hessian(clients, result), len(clients.ids)
    sigma = penalty(result) / m
    n = Q.shape[1]
    one, M = np.eye(n), np.zeros((n * (1 + 2 * m),) * 2)
    M[:n, :n] = m * sigma * one
    for i in range(m):
        a, b = slice(n * (1 + i), n * (2 + i)), slice(n * (1 + m + i), n * (2 + m + i))
        M[a, a] = Q[i] / m + sigma * one
        M[:n, a] = M[a, :n] = -sigma * one
        M[:n, b] = M[b, :n] = -one
        M[a, b] = M[b, a] = one
    eigenvalues = np.linalg.eigvalsh(M)
    rho = 24 * m * (2 * sigma + 1) ** 2 / sigma / (2 * eigenvalues[eigenvalues > 0].min())
    return -math.log1p(1 / rho) / (slope(result) * math.log(10))


def hessian(clients: World, result: Result) -> Array:
    """∇²f_i at the last model: (m, n, n)."""
    n = len(clients.start)
    parts = []
    for block in clients.blocks:
        times = clients.problem.hessian(block, np.tile(result.x, (len(block), 1)))  # type: ignore[arg-type]
        parts.append(np.stack([times(np.tile(row, (len(block), 1))) for row in np.eye(n)], axis=1))
    return np.concatenate(parts)


MEASURES = {
    "measured_over_bound": ratio,
    "lemma_excess": descent_later,
    "lemma_excess_at_0": descent_first,
    "f_less_lagrangian": floor,
    "constant_of_78": constant,
    "digits_a_round": slope,
    "r2": r2,
    "off_the_line": off_the_line,
    "digits_over_gradient_descent": descent_speed,
    "theorem_over_measured": slack,
}
COLUMNS = {"lowest_gradient": lowest, "bound": bound, "measured_over_bound": ratios}
