"""What the theorems of FedEPM say about a run: the exact penalty of Theorem III.1 and the descent of Lemma VI.1.

The run's steps are repeated and the penalised problem (7) is solved here, independently of the algorithm's code. Runs
of theorems have no noise. Below are the other numbers of the paper's tables.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.optimize import minimize

from benchmarks.repeating import Key, agree
from mpifed import Result
from mpifed.experiment import config
from mpifed.experiment.optimum import build_local_federation
from mpifed.extend import Array, Problem
from mpifed.features.certificate.constants import compute_constants
from mpifed.features.certificate.minimum import find_minimum
from mpifed.kernels.blocks import Block
from mpifed.theory import fedepm
from mpifed.theory.statements import StudyConstants


class Setting(NamedTuple):
    """The clients of a run, its constants, x*, and λ, η and μ_{i,0} (m, 1) as the run took them."""

    problem: Problem
    blocks: list[Block]
    ids: Array  # (m,) in the order of the blocks
    known: StudyConstants
    first: Array  # x⁰
    x: Array  # x*
    lam: float
    eta: float
    mu: Array
    options: Any


class Trace(NamedTuple):
    """F(w^{τ_k}, W^k), ‖w_i^{k+1} − w_i^k‖² (K, m), ‖w^{τ_{k+1}} − w^{τ_k}‖² and μ_{i,k+1} (K, m)."""

    F: Array  # (K + 1,)
    moved: Array
    shifted: Array  # (K,)
    mu: Array


@lru_cache(maxsize=8)
def setting(key: Key) -> Setting:
    """Load the clients of a run and find x*."""
    run = config.experiment(key.result.config)
    fed, data = build_local_federation(run)
    host = fed._transport.host  # type: ignore[attr-defined]
    constants, options = compute_constants(run, fed, data.sizes, key.result.cr), cast(Any, run.algorithm)
    assert constants.convex
    lam, eta = fedepm.penalty_weights(options, fed.m, fed.clients_per_round)
    lam = getattr(options, "ratio", lam / constants.largest) * constants.largest
    ids = np.concatenate([np.asarray(ids) for _, _, ids in host.full_blocks])
    d = np.asarray(data.sizes, float)[ids][:, None]
    mu = options.mu0 / (d if options.step_scale == "samples" else np.ones_like(d))
    x = find_minimum(fed, options, fed.initial()).x
    return Setting(run.problem, host.blocks, ids, constants, fed.initial(), x, lam, eta, mu, options)


def evaluate(s: Setting, X: Array) -> tuple[Array, Array]:
    """f_i(x_i) (m,) and ∇f_i(x_i) (m, n) at rows X (m, n), in the order of the blocks."""
    parts = np.split(X, np.cumsum([len(block) for block in s.blocks])[:-1])
    values, gradients = zip(*map(s.problem.value_grad, s.blocks, parts), strict=True)
    return np.concatenate(values), np.concatenate(gradients)


def soft(V: Array, by: Array | float) -> Array:
    """sign(v) max(|v| − by, 0)."""
    return np.sign(V) * np.maximum(np.abs(V) - by, 0)


def penalty(s: Setting, V: Array) -> Array:
    """φ(v_i) = λ‖v_i‖₁ + (η/2)‖v_i‖²: (m,).  (8)"""
    return s.lam * np.abs(V).sum(axis=1) + s.eta / 2 * np.square(V).sum(axis=1)


@lru_cache(maxsize=8)
def trace(key: Key) -> Trace:
    """Repeat (19), (20) and (22) from the selections, with F of (7). ValueError: f differs from the result file."""
    s, result = setting(key), key.result
    m, k0 = len(s.ids), int(s.options.k0)
    x = w = s.first
    W = np.tile(s.first, (m, 1))
    F = [total(s, w, W)]
    moved: list[Array] = []
    shifted: list[float] = []
    mus: list[Array] = []
    for round in range(1, result.cr + 1):
        value, g = evaluate(s, np.tile(x, (m, 1)))
        agree(float(value.mean()), float(result.rounds["objective"][round - 1]), round)
        selected = np.isin(s.ids, result.selected(round))[:, None]
        for _ in range(k0):
            away = W - x
            mu = s.mu * (1 + s.options.c * np.square(away).sum(axis=1, keepdims=True)) * s.options.alpha ** len(F)
            new = np.where(selected, x + soft(mu * away - g, s.lam) / (s.eta + mu), W)  # (20), (22)
            moved.append(np.square(new - W).sum(axis=1))
            shifted.append(float(np.square(x - w).sum()))
            mus.append(mu[:, 0])
            W, w = new, x
            F.append(total(s, w, W))
        x = elastic_net(s, W)  # (19)
    return Trace(np.array(F), np.array(moved), np.array(shifted), np.array(mus))


def total(s: Setting, w: Array, W: Array) -> float:
    """F(w, W) = Σ f_i(w_i) + φ(w_i − w).  (7)"""
    return float(np.sum(evaluate(s, W)[0] + penalty(s, W - w)))


def elastic_net(s: Setting, W: Array) -> Array:
    """argmin_w Σ φ(w_i − w): the median of the w_i and of mean + (λ/η)(2k − m)/m, k = 0 … m.  (19), errata"""
    m = len(W)
    steps = s.lam / s.eta * (2 * np.arange(m + 1) - m)[:, None] / m
    return np.median(np.concatenate([W, W.mean(axis=0) + steps]), axis=0)


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


def gradients(result: Result) -> float:
    """Passes over its samples that a selected client makes for gradients in a round, a count from the settings alone.

    Source: fedepm, section IV.B, the computational complexity that Table I shows in seconds.
    """
    passes = config.experiment(result.config).algorithm.sample_gradients(np.ones(1))
    return float("nan") if passes is None else float(passes[0])


def tct_with_evaluation(result: Result) -> float:
    """TCT + Σ evaluate_seconds: the time including the evaluation of f and all gradients, which the stop rule needs.

    Source: fedepm, section VII.C; the authors' program measures from the first round to the end, evaluation included.
    """
    return result.tct + float(np.nansum(result.rounds["evaluate_seconds"]))


def epsilon_of_upload(result: Result) -> float:
    """The ε of the last upload, were 2‖g_i‖₁ the sensitivity of a gradient: the largest over the clients.

    FedEPM: all steps so far move w_i, by the recursion of ``Clipped.grow``, and the noise has the scale of one step
    1/μ_i (released) or d_i/μ_i (matched). SFedAvg: w_i starts at x, so k0 steps γ_i count, as if their gradients were
    alike, and the noise has the scale of 1/μ_i or of one γ_i. With clipped gradients it is the configured ε, and a
    guarantee. Source: fedepm (20), (27), (35), (39) and docs/studies/errata.md.
    """
    algorithm, d = result.config["algorithm"], np.asarray(result.clients["samples"], float)
    if algorithm["noise"] == "none":
        return float("nan")
    if algorithm["noise"] == "clipped":
        return float(algorithm["epsilon"])
    released = algorithm["noise"] == "released"
    if algorithm["name"] != "fedepm":
        gamma = algorithm["step"]["a"] * d.max() / np.sqrt(2 * algorithm["k0"])
        mu = 0.05 * 1.001 ** algorithm["k0"]
        return float(algorithm["epsilon"] * algorithm["k0"] * (gamma * mu if released else 1))
    return float(algorithm["epsilon"] * np.max(moved(result, d, 1.0 if released else d)))


def moved(result: Result, d: Array, scale: Array | float) -> Array:
    """How far a gradient of 1 more moves w_i until its last upload, over ``scale``/μ_i: (m,)."""
    algorithm, k0 = result.config["algorithm"], result.config["algorithm"]["k0"]
    over = d if algorithm["step_scale"] == "samples" else np.ones(len(d))
    eta = algorithm.get("eta") or (0.02 * result.m + 1) * (result.config["selection"].get("share", 1.0) + 0.1) * 1e-5
    reach, last = np.zeros(len(d)), np.zeros(len(d))
    for round in range(1, result.cr + 1):
        own = np.zeros(len(d), bool)
        own[result.selected(round)] = True
        grown = reach.copy()
        for j in range(k0):
            mu = algorithm["mu0"] * algorithm["alpha"] ** (k0 * (round - 1) + j + 1)
            grown = (mu / over * grown + 1) / (eta + mu / over)
        reach = np.where(own, grown, reach)
        last = np.where(own, grown * mu, last)
    return last / scale


MEASURES |= {
    "gradients": gradients,
    "tct_with_evaluation": tct_with_evaluation,
    "epsilon_of_upload": epsilon_of_upload,
}
