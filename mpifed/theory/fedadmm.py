"""The theorems of S. Zhou, G. Y. Li, "Federated learning via inexact ADMM", arXiv:2204.10607 (2022)."""

import math
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.theory.statements import Bound, Certificate, Condition, StudyConstants, no_theorem, smoothness


def contraction(sigma: Array, r: Array, s: Array) -> float:
    """Return the largest ϱ with σ_i >= α_i s_i + ϱ α_i r_i/2 for all i.  (Theorem 3.1)

    Here and below ``sigma`` are σ_i, ``r`` α_i r_i and ``s`` α_i s_i, (m,) each, with ∇²f_i ⪰ −s_i I.
    """
    return float(np.min(2 * (sigma - s) / r))


def inner_steps(sigma: Array, r: Array, s: Array, squared_distance: Any, eps: float) -> float:
    """Return κ = log_ϱ(2(α_i²r_i² + σ_i²)‖w − v_i*‖²/ε_i) − 1, the largest over i; nan unless ϱ > 1.  (3.13)

    ``squared_distance`` (m,) are the ‖w − v_i*‖². v^{κ+1} reaches ε_i, after κ + 1 steps of (3.12).
    """
    rho = contraction(sigma, r, s)
    if not (rho > 1 and eps > 0):
        return math.nan
    ratio = float(np.max(2 * (r**2 + sigma**2) * squared_distance)) / eps
    return max(math.log(ratio) / math.log(rho) - 1, 0.0) if ratio > 0 else 0.0


def descent(sigma: Array, r: Array) -> float:
    """Return c = min_i (σ_i + α_i r_i)(2σ_i − 5α_i r_i)/σ_i, positive exactly if σ_i > 5α_i r_i/2.  (4.4)"""
    return float(np.min((sigma + r) * (2 * sigma - 5 * r) / sigma))


def coverage_condition(known: StudyConstants) -> Condition:
    """Return the condition of Scheme 4.1: every client is selected at least once in every s0 rounds."""
    always = {"all": 1.0, "cover": 1.0}.get(known.selection, 1.0 if known.clients_per_round == known.m else math.nan)
    return Condition.of(
        "every client within s0 rounds (1: yes)", always, "=", 1.0, "Scheme 4.1; uniform: see Remark 4.1"
    )


def certificate(options: Any, known: StudyConstants) -> Certificate:
    if known.penalised:
        return no_theorem("fedadmm", "its theorems are about f, and here the server takes proximal steps for F = f + h")
    if known.r is None:
        return Certificate(TITLE, [smoothness(known, "Assumption 4.1")], [], [])
    r = known.r / known.m
    # s_i bounds negative curvature: 0 for convex f_i, and r_i where nothing is known but the Lipschitz constant.
    s = r if known.mu is None else np.maximum(-known.mu, 0) / known.m
    sigma = options.r0 * r
    rho = contraction(sigma, r, s)
    g0 = np.sqrt(known.g0) / known.m  # ‖g_i⁰ + π_i⁰‖ where π_i⁰ = 0
    start = 0.0 if options.first == "-gradient" else float(g0.max()) ** 2
    eps = float(options.k0**2 if options.eps0 is None else options.eps0)
    # ‖w − v_i*‖ is at most ‖g_i + π_i‖ over the modulus of convexity σ_i − s_i. Where that is not positive the number
    # is as large as it can be, and the condition on ϱ says why.
    squared_distance = ((0.0 if start == 0 else g0) / np.maximum(sigma - s, 1e-300)) ** 2
    steps = inner_steps(sigma, r, s, squared_distance, options.nu * eps)
    need = steps if math.isnan(steps) else math.ceil(steps) + 1
    coercive = 1.0 if known.mu_min > 0 else math.nan
    name = "⌈κ⌉ + 1 of (3.13) in the first iteration <= inner_max"
    check = Condition.of
    return Certificate(
        TITLE,
        [
            smoothness(known, "Assumption 4.1"),
            check("f is coercive (1: strongly convex f_i)", coercive, "=", 1.0, "Assumption 4.2"),
            check("ϱ = min 2(σ_i − α_i s_i)/(α_i r_i) > 1", rho, ">", 1.0, "Theorem 3.1"),
            check("min σ_i/(α_i r_i) > 5/2", float(np.min(sigma / r)), ">", 2.5, "Theorem 4.1; c > 0 in (4.4)"),
            check("ν >= 1/2", options.nu, ">=", 0.5, "Algorithm 1"),
            check("ν < 1", options.nu, "<", 1.0, "Algorithm 1"),
            check("max ‖π_i⁰ + g_i⁰‖² <= ε_i⁰ (at k = 0 alone)", start, "<=", eps, "(7.6) at k = 0, for Lemma 4.1"),
            check(name, need, "<=", options.inner_max, "(3.5), (3.13)"),
            coverage_condition(known),
        ],
        [
            Bound("squared distance to v_i* per inner step", "1/ϱ", 1 / rho, "Theorem 3.1"),
            Bound("fall of L̃ over Σ‖w_i^{k+1} − w_i^k‖²", "c/4, c of (4.4)", descent(sigma, r) / 4, "Lemma 4.1"),
        ],
        REMARKS,
    )


REMARKS = [
    "Theorem 4.1 proves that f and L converge to one value and ∇f to 0, without a rate",
    "Lemma 4.1 takes ‖π_i⁰ + g_i⁰‖² <= ε_i⁰ for granted, which π_i⁰ = −g_i⁰ of Algorithm 1 gives; where it "
    "fails, the descent need not hold at k = 0, and does after",
]
TITLE = "Theorem 3.1, Lemma 4.1 and Theorem 4.1 of FedADMM, arXiv:2204.10607"
