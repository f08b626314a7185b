"""The theorems of section IV of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

import math
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.theory.statements import (
    Bound,
    Certificate,
    Condition,
    StudyConstants,
    no_theorem,
    smoothness,
    strong_convexity,
)

ZERO = 1e-14  # eigenvalues below this share of the largest are rounding
PRINTED = 100  # the constant of Theorem IV.3
PROVED = 120  # what (78) and (23) give for it: 5 · 24


def table_factor(logistic: bool, samples: int, n: int) -> float:
    """Return t of Table III, with which σ = t·max r_i/m.  (Section V)"""
    return max(0.025, 4 * math.log(samples) / n) if logistic else 0.15


def gradient_bound(weight: float, gap: float, rounds: Any, constant: float = PRINTED) -> Any:
    """Return constant · mσ k0 (L − f*)/k after k = rounds · k0 iterations, ``weight`` = mσ.  (Theorem IV.3)"""
    return constant * weight * gap / rounds


def rate_factor(m: int, sigma: float, c: float) -> float:
    """Return ρ/(ρ + 1) per round, ρ = 24 m c (2σ + 1)²/σ, with ‖∇L‖² >= (L − L*)/c near the limit.  (Theorem IV.4)"""
    rho = 24 * m * c * (2 * sigma + 1) ** 2 / sigma
    return rho / (rho + 1)


def steepness(Q: Array, sigma: float) -> float:
    """Return c of L − L* <= c ‖∇L‖²: 1/(2λ), λ the least positive eigenvalue of the Lagrangian's Hessian.

    Q (m, n, n) are the ∇²f_i there; exact for quadratic f_i.  Source: (7), (54), Definition A.1 with θ = 1/2.
    """
    # Of L = Σ f_i(x_i)/m + ⟨π_i, x_i − x⟩ + (σ/2)‖x_i − x‖² in the variables x, then all x_i, then all π_i. The Hessian
    # is not definite, because L is linear in π_i.
    m, n = Q.shape[:2]
    one = np.eye(n)
    M = np.zeros((n * (1 + 2 * m),) * 2)
    M[:n, :n] = m * sigma * one
    for i in range(m):
        a = slice(n * (1 + i), n * (2 + i))
        b = slice(n * (1 + m + i), n * (2 + m + i))
        M[a, a] = Q[i] / m + sigma * one
        M[:n, a] = M[a, :n] = -sigma * one
        M[:n, b] = M[b, :n] = -one
        M[a, b] = M[b, a] = one
    eigenvalues = np.linalg.eigvalsh(M)
    return float(1 / (2 * eigenvalues[eigenvalues > ZERO * eigenvalues[-1]].min()))


def largest_rise(m: int, sigma: float, r: Any, g: Any) -> float:
    """Return the most that iteration k = 0 adds to the Lagrangian from x_i⁰ = x⁰, π_i⁰ = 0, g = ‖∇f_i(x⁰)‖² (m,).

    A selected client moves by s with ‖s‖ <= ‖∇f_i‖/(mσ), which changes its part by at most (σ/2 + r_i/2m)‖s‖².
    """
    return float(np.sum((sigma / 2 + r / (2 * m)) * g / (m * sigma) ** 2))


def gradient_bounds(weight: float, gap: float, extra: float, start: float, rounds: int) -> list[Bound]:
    """Return the bounds of Theorem IV.3 after ``rounds`` rounds: as printed, and as proved for the start in use.

    ``weight`` = mσ; ``gap`` = f(x⁰) − f*, the Lagrangian at first less f*; the first iteration adds ``extra`` at most;
    ``start`` = max ‖π_i⁰ + ∇f_i(x⁰)/m‖.
    """
    # A study without rounds gets the bound of one round, because the bound divides by the rounds.
    rounds = max(rounds, 1)
    printed = gradient_bound(weight, gap, rounds)
    column = "bound", "grad_norm_sq"
    if start == 0:
        formula = "120 mσ (f(x⁰) − f*)/R"
        proved = gradient_bound(weight, gap, rounds, PROVED)
        last = Bound("min ‖∇f‖² over rounds 0 … R − 1, as proved", formula, proved, "(23), (78)", *column)
    else:
        formula = "120 mσ (f(x⁰) + rise − f*)/(R − 1)"
        proved = gradient_bound(weight, gap + extra, max(rounds - 1, 1), PROVED)
        source = "(23), (78) for k >= 1; rise: (7) after k = 0"
        last = Bound("min ‖∇f‖² over rounds 1 … R − 1, as proved", formula, proved, source, *column, first=1)
    name = "min ‖∇f‖² over rounds 0 … R − 1, as printed"
    return [Bound(name, "100 mσ (f(x⁰) − f*)/R", printed, "Theorem IV.3", *column), last]


def certificate(options: Any, known: StudyConstants) -> Certificate:
    if options.adaptive:
        return no_theorem("fedgia with algorithm.adaptive = true", "those of FedGiA are about one σ for all rounds")
    m = known.m
    sigma = (options.t or table_factor(known.logistic, int(known.d.sum()), known.n)) * known.L_max / m
    H = 0.0 if options.H == "zero" else 1.0  # the largest ‖H_i‖/r_i
    start = 0.0 if options.first == "-gradient" else math.sqrt(float(known.g0.max())) / m
    extra = math.nan if known.r is None else largest_rise(m, sigma, known.r, known.g0)
    lemma = "(39), (40) at k = 0; section V.B: π⁰ = 0"
    return Certificate(
        "Theorems IV.1, IV.3 and IV.4 of FedGiA, arXiv:2205.01438",
        [
            smoothness(known, "Assumption IV.1"),
            Condition.of("σ >= 6 r/m", sigma, ">=", 6 * known.L_max / m, "Lemma IV.1, Theorems IV.1–IV.4"),
            Condition.of("max ‖H_i‖/r_i <= 1", H, "<=", 1.0, "Remark IV.1"),
            Condition.of("max ‖π_i⁰ + ∇f_i(x⁰)/m‖ = 0 (at k = 0 alone)", start, "=", 0.0, lemma),
            strong_convexity(known, "after Theorem IV.4: for the linear rate"),
        ],
        [
            *gradient_bounds(m * sigma, known.f0 - known.lower_bound, extra, start, known.rounds),
            linear_factor(sigma, known),
        ],
        [
            *([FROM_ZERO] if start else []),
            "100 is printed in Theorem IV.3, and its proof gives 5 · 24 = 120",
            KURDYKA if known.hessians is None or not known.mu_min > 0 else COMPUTED,
        ],
    )


def linear_factor(sigma: float, known: StudyConstants) -> Bound:
    """Return the factor of Theorem IV.4 ii), a number where f_i are strongly convex with known Hessians."""
    value = math.nan
    if known.hessians is not None and known.mu_min > 0:
        value = rate_factor(known.m, sigma, steepness(known.hessians, sigma))
    formula = "ρ/(ρ + 1), ρ = 24 m c (2σ + 1)²/σ, c the Kurdyka–Łojasiewicz constant of the Lagrangian"
    return Bound("f − f* per round, near the limit", formula, value, "Theorem IV.4 ii)", "factor", "objective_gap")


KURDYKA = "c of Theorem IV.4 is not known (f_i not strongly convex, or n(1 + 2m) above 1000), so it has no number"
COMPUTED = "c of Theorem IV.4 is that of the Lagrangian at its limit, from its Hessian; exact for quadratic f_i"
FROM_ZERO = (
    "Lemma IV.1 needs π_i⁰ = −∇f_i(x⁰)/m at k = 0 (algorithm.start), where section V.B starts from 0: the Lagrangian "
    "may rise in the first iteration, and never after; the bound as proved leaves that iteration out"
)
