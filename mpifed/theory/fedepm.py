"""The theorems of S. Zhou, G. Y. Li, "Exact penalty method for federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.theory.fedadmm import coverage_condition
from mpifed.theory.statements import Bound, Certificate, Condition, StudyConstants, smoothness


def penalty_weights(options: Any, m: int, cohort: int) -> tuple[float, float]:
    """Return λ and η, by default those of section VII: η = (0.02 m + 1)(ρ + 0.1)·1e-5 and λ = η/2."""
    eta = options.eta or (0.02 * m + 1) * (cohort / m + 0.1) * 1e-5
    return options.lam or eta / 2, eta


def growth_bound(mu: Any, c: float, factor: float, r: Any) -> float:
    """Return Σ r_i²/(2 μ_{i,0} c factor), the bound of the growth of F without noise.

    The factor is α^{k+1} for iteration k (32), and α − 1 for all iterations together (31).
    """
    return float(np.sum(np.square(r) / (2 * mu * c * factor))) if c > 0 and factor > 0 else math.inf


def first_descent(mu: Any, alpha: float, eta: float, r: Any) -> float:
    """Return the first k with μ_{i,0} α^{k+1} + η >= r_i for all i; ∞ where there is none.  (32)"""
    # μ_{i,0} α^{k+1} >= r_i − η for all i, so that α^{k+1} is at least the largest of (r_i − η)/μ_{i,0}.
    need = float(np.max((np.asarray(r) - eta) / mu))
    if need <= alpha:
        return 0.0
    return math.ceil(math.log(need) / math.log(alpha) - 1) if alpha > 1 else math.inf


def certificate(options: Any, known: StudyConstants) -> Certificate:
    if known.r is None:
        return Certificate(TITLE, [smoothness(known, "Assumption VI.1")], [], [])
    lam, eta = penalty_weights(options, known.m, known.clients_per_round)
    alpha, c = options.alpha, options.c
    threshold = known.largest
    by_samples = options.step_scale == "samples"
    mu = options.mu0 / (known.d if by_samples else np.ones(known.m))  # μ_{i,0} as the step takes it
    descent = float(np.min(mu * alpha + eta - known.r))
    name = "noise of scale Δ_i/(ε μ_i) (1: yes)"  # 2‖g‖₁ is in the place of Δ_i, or the scale of a clipped gradient
    check = Condition.of
    noise = [check(name, 0.0, "=", 1.0, "Setup VI.1; without noise its terms are 0")]
    later = "(32), (33): else the second sum is no descent; later k: see below"
    return Certificate(
        TITLE,
        [
            smoothness(known, "Assumption VI.1"),
            check("λ >= λ* = max |(∇f_i(w*))_j|", lam, ">=", threshold, "Theorem III.1, (11)"),
            check("η > 0", eta, ">", 0.0, "(8)"),
            check("α > 1", alpha, ">", 1.0, "Algorithm 2; (31) divides by α − 1"),
            check("c > 0", c, ">", 0.0, "Algorithm 2; (31), (71) divide by c"),
            check("min (μ_{i,1} + η − r_i) >= 0", descent, ">=", 0.0, later),
            coverage_condition(known),
            *(noise if options.noise != "none" else []),
        ],
        [
            Bound("threshold λ*", f"max |(∇f_i)_j| at {known.at}", threshold, "(11)"),
            Bound("λ*/λ", "the penalty is exact where this is at most 1", threshold / lam, "(11)"),
            *growth_bounds(mu, c, alpha, eta, known.r),
            Bound("F at the start", "Σ f_i(x⁰)", known.m * known.f0, "(7)"),
        ],
        [*([PRINTED] if by_samples else []), *REMARKS],
    )


def growth_bounds(mu: Array, c: float, alpha: float, eta: float, r: Array) -> list[Bound]:
    """Return the bounds of Lemma VI.1 on the growth of F."""
    first = "first iteration k with μ_{i,k+1} + η >= r_i"
    grown = growth_bound(mu, c, alpha, r)
    total = growth_bound(mu, c, alpha - 1, r)
    return [
        Bound(first, "log_α(max (r_i − η)/μ_{i,0}) − 1", first_descent(mu, alpha, eta, r), "(32)"),
        Bound("growth of F allowed at k = 0", "Σ r_i²/(2μ_{i,0} c α)", grown, "(32)"),
        Bound("growth of F allowed altogether", "Σ r_i²/(2μ_{i,0} c (α − 1))", total, "(31)"),
    ]


PRINTED = "steps are μ_i/d_i here, so μ_i of the theorems is read as μ_i/d_i"
REMARKS = (
    "Theorem VI.1 proves that F converges and steps vanish, not that the limit is stationary, and no rate",
    "Theorem V.1, on privacy, is false from the second upload on, so it is not certified",
)
TITLE = "Theorem III.1, Lemma VI.1 and Theorem VI.1 of FedEPM, arXiv:2208.11231"
