"""The theorems of section IV of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

import math
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.theory.statements import Bound, Certificate, Condition, Known, nothing, smooth, strongly

ZERO = 1e-14  # eigenvalues below this share of the largest are rounding
PRINTED = 100  # the constant of Theorem IV.3
PROVED = 120  # what (78) and (23) give for it: 5 · 24


def bound(weight: float, gap: float, rounds: Any, constant: float = PRINTED) -> Any:
    """constant · mσ k0 (L − f*)/k after k = rounds · k0 iterations, with ``weight`` = mσ.  (Theorem IV.3)"""
    return constant * weight * gap / rounds


def factor(m: int, sigma: float, c: float) -> float:
    """ρ/(ρ + 1) per round, ρ = 24 m c (2σ + 1)²/σ; c: ‖∇L‖² is at least (L − L*)/c near the limit.  (Theorem IV.4)"""
    rho = 24 * m * c * (2 * sigma + 1) ** 2 / sigma
    return rho / (rho + 1)


def steepness(Q: Array, sigma: float) -> float:
    """c of L − L* <= c ‖∇L‖² at the limit, 1/(2λ) with λ the least positive eigenvalue of the Lagrangian's Hessian.

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


def rise(m: int, sigma: float, r: Any, g: Any) -> float:
    """The most that iteration k = 0 adds to the Lagrangian from x_i⁰ = x⁰, π_i⁰ = 0, with g = ‖∇f_i(x⁰)‖² (m,).

    A selected client moves by s with ‖s‖ <= ‖∇f_i‖/(mσ), which changes its part by at most (σ/2 + r_i/2m)‖s‖².
    """
    return float(np.sum((sigma / 2 + r / (2 * m)) * g / (m * sigma) ** 2))


def gradients(weight: float, gap: float, extra: float, start: float, rounds: int) -> list[Bound]:
    """The bounds of Theorem IV.3 after so many rounds: as printed, and what its proof gives from the start in use.

    ``weight`` = mσ; ``gap`` = f(x⁰) − f*, the Lagrangian at first less f*; the first iteration adds ``extra`` at most;
    ``start`` = max ‖π_i⁰ + ∇f_i(x⁰)/m‖.
    """
    # A study of no rounds has the bound of one: a bound that is divided by 0 would be a number of no round.
    rounds = max(rounds, 1)
    printed = bound(weight, gap, rounds)
    column = "bound", "grad_norm_sq"
    if start == 0:
        formula = "120 mσ (f(x⁰) − f*)/R"
        proved = bound(weight, gap, rounds, PROVED)
        last = Bound("min ‖∇f‖² over rounds 0 … R − 1, as proved", formula, proved, "(23), (78)", *column)
    else:
        formula = "120 mσ (f(x⁰) + rise − f*)/(R − 1)"
        proved = bound(weight, gap + extra, max(rounds - 1, 1), PROVED)
        source = "(23), (78) for k >= 1; rise: (7) after k = 0"
        last = Bound("min ‖∇f‖² over rounds 1 … R − 1, as proved", formula, proved, source, *column, first=1)
    name = "min ‖∇f‖² over rounds 0 … R − 1, as printed"
    return [Bound(name, "100 mσ (f(x⁰) − f*)/R", printed, "Theorem IV.3", *column), last]


def certificate(options: Any, known: Known) -> Certificate:
    if options.adaptive:
        return nothing("fedgia with algorithm.adaptive = true", "those of FedGiA are about one σ for all rounds")
    m = known.m
    sigma = options.scale(known.logistic, int(known.d.sum()), known.n) * known.most / m
    H = 0.0 if options.H == "zero" else 1.0  # the largest ‖H_i‖/r_i
    start = 0.0 if options.first == "-gradient" else math.sqrt(float(known.g0.max())) / m
    extra = math.nan if known.r is None else rise(m, sigma, known.r, known.g0)
    lemma = "(39), (40) at k = 0; section V.B: π⁰ = 0"
    return Certificate(
        "Theorems IV.1, IV.3 and IV.4 of FedGiA, arXiv:2205.01438",
        [
            smooth(known, "Assumption IV.1"),
            Condition.of("σ >= 6 r/m", sigma, ">=", 6 * known.most / m, "Lemma IV.1, Theorems IV.1–IV.4"),
            Condition.of("max ‖H_i‖/r_i <= 1", H, "<=", 1.0, "Remark IV.1"),
            Condition.of("max ‖π_i⁰ + ∇f_i(x⁰)/m‖ = 0 (at k = 0 alone)", start, "=", 0.0, lemma),
            strongly(known, "after Theorem IV.4: for the linear rate"),
        ],
        [*gradients(m * sigma, known.f0 - known.below, extra, start, known.rounds), linear(sigma, known)],
        [
            *([FROM_ZERO] if start else []),
            "100 is printed in Theorem IV.3, and its proof gives 5 · 24 = 120",
            KURDYKA if known.hessians is None or not known.least > 0 else COMPUTED,
        ],
    )


def linear(sigma: float, known: Known) -> Bound:
    """The factor of Theorem IV.4 ii), as a number where the f_i are strongly convex and their Hessians are known."""
    value = math.nan
    if known.hessians is not None and known.least > 0:
        value = factor(known.m, sigma, steepness(known.hessians, sigma))
    formula = "ρ/(ρ + 1), ρ = 24 m c (2σ + 1)²/σ, c the Kurdyka–Łojasiewicz constant of the Lagrangian"
    return Bound("f − f* per round, near the limit", formula, value, "Theorem IV.4 ii)", "factor", "objective_gap")


KURDYKA = "c of Theorem IV.4 is not known (f_i not strongly convex, or n(1 + 2m) above 1000), so it has no number"
COMPUTED = "c of Theorem IV.4 is that of the Lagrangian at its limit, from its Hessian; exact for quadratic f_i"
FROM_ZERO = (
    "Lemma IV.1 needs π_i⁰ = −∇f_i(x⁰)/m at k = 0 (algorithm.start), where section V.B starts from 0: the Lagrangian "
    "may rise in the first iteration, and never after; the bound as proved leaves that iteration out"
)
