"""The theorems of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated learning via ADMM with Moreau
envelope", arXiv:2311.06756 (2023)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mpifed.theory.statements import Bound, Certificate, Condition, Known, smooth

BIASED = ("biased", "power-of-choice", "greedy", "importance", "cyclic")  # selections


class Quantities(NamedTuple):
    """λ, ρ, α_i = 1/m, L = max r_i, the least curvature of the f_i, s of m clients selected, T rounds."""

    lam: float
    rho: float
    alpha: float
    L: float
    least: float
    selected: int
    rounds: int


def slope(lam: float, rho: float, alpha: float) -> float:
    """λ²α²(1 + ρ)/ρ², the left side of the condition of Lemma 1."""
    return lam**2 * alpha**2 * (1 + rho) / rho**2


def c1(lam: float, rho: float, alpha: float) -> float:
    """c_1 = (λα + ρ)/2 − λ²α²(1 + ρ)/ρ².  (Theorem 2)"""
    return (lam * alpha + rho) / 2 - slope(lam, rho, alpha)


def c2(lam: float, rho: float, alpha: float, L: float) -> float:
    """c_2 = 4λ²α²(1 + 1/ρ²) + 2α²(L² + 2λ²) + 2ρ² + 2.  (Theorem 2)"""
    return 4 * lam**2 * alpha**2 * (1 + 1 / rho**2) + 2 * alpha**2 * (L**2 + 2 * lam**2) + 2 * rho**2 + 2


def divisor(lam: float, rho: float, alpha: float, L: float) -> float:
    """(1/ρ² − 1)λ²α² − (Lα + ρ)/2, by which (16) divides ε_i: Young's inequality in (38) needs it positive."""
    return (1 / rho**2 - 1) * lam**2 * alpha**2 - (L * alpha + rho) / 2


def c0(lam: float, rho: float, alpha: float, L: float) -> float:
    """c_0 = α²/((1/ρ² − 1)λ²α² − (Lα + ρ)/2).  (Theorem 2)"""
    return alpha**2 / divisor(lam, rho, alpha, L)


def modulus(lam: float, alpha: float, least: float) -> float:
    """μ = α(λ + least curvature of f_i), the strong convexity of L_i in θ_i.  (Theorem 1)"""
    return alpha * (lam + least)


def conditions(q: Quantities) -> list[Condition]:
    """The conditions of Theorem 1, Lemma 1 and Theorem 2."""
    pull = q.lam * q.alpha
    return [
        Condition.of(
            "λ²α²(1 + ρ)/ρ² < (λα + ρ)/2", slope(q.lam, q.rho, q.alpha), "<", (pull + q.rho) / 2, "Lemma 1, Theorem 2"
        ),
        Condition.of("ρ >= λα", q.rho, ">=", pull, "Theorem 2"),
        Condition.of(
            "(1/ρ² − 1)λ²α² > (Lα + ρ)/2",
            (1 / q.rho**2 - 1) * pull**2,
            ">",
            (q.L * q.alpha + q.rho) / 2,
            "(38), not stated: Young's inequality divides by the difference",
        ),
        Condition.of("μ = α(λ + least curvature) > 0", modulus(q.lam, q.alpha, q.least), ">", 0.0, "Theorem 1"),
    ]


def bounds(q: Quantities) -> list[Bound]:
    """The bounds of Theorem 2, 1) and of Theorem 1."""
    numbers = q.lam, q.rho, q.alpha
    first, second, mu = c1(*numbers), c2(*numbers, q.L), modulus(q.lam, q.alpha, q.least)
    sound = first > 0 and divisor(*numbers, q.L) > 0
    return [
        Bound(
            "mean of ‖∇L‖²/m over R rounds, per unit of f(x⁰) − F*",
            "c_2/(c_1 s R)",
            second / (first * q.selected * max(q.rounds, 1)) if first > 0 else math.nan,
            "(19)",
        ),
        Bound(
            "the same per unit of max ε_i, for ever",
            "c_3 = 2 + c_2 c_0/c_1",
            2 + second * c0(*numbers, q.L) / first if sound else math.nan,
            "(19)",
        ),
        Bound(
            "least ‖θ_i⁺ − θ_i‖² over ‖∇_θ L_i‖²",
            "1/(2α²(L² + λ²))",
            1 / (2 * q.alpha**2 * (q.L**2 + q.lam**2)),
            "(14)",
        ),
        Bound("most ‖θ_i⁺ − θ_i‖² over ‖∇_θ L_i‖²", "1/μ²", 1 / mu**2 if mu > 0 else math.nan, "(14)"),
    ]


def certificate(options: Any, known: Known) -> Certificate:
    """The conditions for the options of FLAME."""
    least = known.least if known.mu is not None else -known.most
    q = Quantities(options.lam, options.rho, 1 / known.m, known.most, least, known.cohort, known.rounds)
    local = 1.0 if options.center == "local" else 0.0
    unbiased = float(known.selection not in (*BIASED, "arrivals"))
    return Certificate(
        "Theorem 1, Lemma 1 and Theorem 2 of FLAME, arXiv:2311.06756",
        [
            smooth(known, "Assumption 1"),
            *conditions(q),
            Condition.of("centre of θ_i is the client's own w_i (1: yes)", local, "=", 1.0, "(9), Algorithm 1"),
            Condition.of("unbiased selection (1: yes)", unbiased, "=", 1.0, "Theorem 2, 1)"),
        ],
        bounds(q),
        [
            "F* is the minimum of (6); ε_i is the accuracy of (13), which local epochs do not control",
            "Theorem 1 is approximate as the paper says: it takes θ_i⁺ for the exact minimiser of (9)",
        ],
    )
