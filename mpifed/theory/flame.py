"""The theorems of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated learning via ADMM with Moreau
envelope", arXiv:2311.06756 (2023)."""

import math
from typing import Any

from mpifed.theory.statements import Bound, Certificate, Condition, StudyConstants, smoothness

BIASED = ("biased", "power-of-choice", "greedy", "importance", "cyclic")  # selections


def slope(lam: float, rho: float, alpha: float) -> float:
    """Return λ²α²(1 + ρ)/ρ², the left side of the condition of Lemma 1."""
    return lam**2 * alpha**2 * (1 + rho) / rho**2


def c1(lam: float, rho: float, alpha: float) -> float:
    """Return c_1 = (λα + ρ)/2 − λ²α²(1 + ρ)/ρ².  (Theorem 2)"""
    return (lam * alpha + rho) / 2 - slope(lam, rho, alpha)


def c2(lam: float, rho: float, alpha: float, L: float) -> float:
    """Return c_2 = 4λ²α²(1 + 1/ρ²) + 2α²(L² + 2λ²) + 2ρ² + 2.  (Theorem 2)"""
    return 4 * lam**2 * alpha**2 * (1 + 1 / rho**2) + 2 * alpha**2 * (L**2 + 2 * lam**2) + 2 * rho**2 + 2


def divisor(lam: float, rho: float, alpha: float, L: float) -> float:
    """Return (1/ρ² − 1)λ²α² − (Lα + ρ)/2, the divisor of ε_i in (16): Young's inequality in (38) needs it positive."""
    return (1 / rho**2 - 1) * lam**2 * alpha**2 - (L * alpha + rho) / 2


def c0(lam: float, rho: float, alpha: float, L: float) -> float:
    """Return c_0 = α²/((1/ρ² − 1)λ²α² − (Lα + ρ)/2).  (Theorem 2)"""
    return alpha**2 / divisor(lam, rho, alpha, L)


def bounds(lam: float, rho: float, curvature: float, known: StudyConstants) -> list[Bound]:
    """Return the bounds of Theorem 2, 1) and of Theorem 1 for f_i with a least ``curvature``."""
    alpha = 1 / known.m
    L = known.L_max
    first = c1(lam, rho, alpha)
    second = c2(lam, rho, alpha, L)
    mu = alpha * (lam + curvature)  # the strong convexity of L_i in θ_i
    mean = second / (first * known.clients_per_round * max(known.rounds, 1)) if first > 0 else math.nan
    sound = first > 0 and divisor(lam, rho, alpha, L) > 0
    accuracy = 2 + second * c0(lam, rho, alpha, L) / first if sound else math.nan
    shortest = 1 / (2 * alpha**2 * (L**2 + lam**2))
    return [
        Bound("mean of ‖∇L‖²/m over R rounds, per unit of f(x⁰) − F*", "c_2/(c_1 s R)", mean, "(19)"),
        Bound("the same per unit of max ε_i, for ever", "c_3 = 2 + c_2 c_0/c_1", accuracy, "(19)"),
        Bound("least ‖θ_i⁺ − θ_i‖² over ‖∇_θ L_i‖²", "1/(2α²(L² + λ²))", shortest, "(14)"),
        Bound("most ‖θ_i⁺ − θ_i‖² over ‖∇_θ L_i‖²", "1/μ²", 1 / mu**2 if mu > 0 else math.nan, "(14)"),
    ]


def certificate(options: Any, known: StudyConstants) -> Certificate:
    lam, rho = options.lam, options.rho
    alpha = 1 / known.m
    L = known.L_max
    # An L-smooth f_i has a curvature of at least −L, whether the problem tells more or not.
    curvature = known.mu_min if known.mu is not None else -L
    pull = lam * alpha
    young = (1 / rho**2 - 1) * pull**2
    local = 1.0 if options.center == "local" else 0.0
    unbiased = float(known.selection not in (*BIASED, "arrivals"))
    check = Condition.of
    lemma = check("λ²α²(1 + ρ)/ρ² < (λα + ρ)/2", slope(lam, rho, alpha), "<", (pull + rho) / 2, "Lemma 1, Theorem 2")
    why = "(38), not stated: Young's inequality divides by the difference"
    return Certificate(
        "Theorem 1, Lemma 1 and Theorem 2 of FLAME, arXiv:2311.06756",
        [
            smoothness(known, "Assumption 1"),
            lemma,
            check("ρ >= λα", rho, ">=", pull, "Theorem 2"),
            check("(1/ρ² − 1)λ²α² > (Lα + ρ)/2", young, ">", (L * alpha + rho) / 2, why),
            check("μ = α(λ + least curvature) > 0", alpha * (lam + curvature), ">", 0.0, "Theorem 1"),
            check("centre of θ_i is the client's own w_i (1: yes)", local, "=", 1.0, "(9), Algorithm 1"),
            check("unbiased selection (1: yes)", unbiased, "=", 1.0, "Theorem 2, 1)"),
        ],
        bounds(lam, rho, curvature, known),
        [
            "F* is the minimum of (6); ε_i is the accuracy of (13), which local epochs do not control",
            "Theorem 1 is approximate as the paper says: it takes θ_i⁺ for the exact minimiser of (9)",
        ],
    )
