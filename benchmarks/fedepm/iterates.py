"""The iterates of a FedEPM run, computed again from its experiment file and its selections.

Lemma VI.1 is about F of (7) at every iteration, so the run's steps are repeated here, independently of the algorithm's
code. Runs have no noise.
"""

from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from benchmarks.repeating import Key, agree
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
