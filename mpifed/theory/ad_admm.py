"""Theorem 1 of T. H. Chang, M. Hong, W. C. Liao, X. Wang, "Asynchronous distributed ADMM for large-scale optimization,
Part I: Algorithm and convergence analysis", arXiv:1509.02597 (2016)."""

from __future__ import annotations

import math
from typing import Any

from mpifed.theory.statements import Bound, Certificate, Condition, Known, is_convex, smooth


def least_penalty(L: float, convex: bool) -> float:
    """((1 + L + L²) + √((1 + L + L²)² + 8L²))/2; for convex f_i without the summand L: what ρ must exceed."""
    b = 1 + L**2 + (0 if convex else L)
    return (b + math.sqrt(b**2 + 8 * L**2)) / 2


def least_proximal(rho: float, m: int, S: int, age: float) -> float:
    """(S(1 + ρ²)(τ − 1)² − mρ)/2 where uploads are at most τ − 1 = ``age`` rounds old and fewer than S arrive."""
    return (S * (1 + rho**2) * age**2 - m * rho) / 2 if math.isfinite(age) else math.inf


def certificate(options: Any, known: Known) -> Certificate:
    """The conditions for the options of AD-ADMM; S = m + 1 covers any number of arrivals."""
    if known.r is None:
        return Certificate(TITLE, [smooth(known, "Assumption 2")], [], [])
    L, convex, m = known.most, is_convex(known.r, known.mu), known.m
    rho = options.penalty(L)
    kind = "convex f_i: (1 + L²)" if convex else "(1 + L + L²)"
    name = f"ρ > (b + √(b² + 8L²))/2, b = {kind}"
    unit = least_penalty(1.0, convex)
    return Certificate(
        TITLE,
        [
            smooth(known, "Assumption 2"),
            Condition.of("oldest upload in rounds, τ − 1 < ∞", known.oldest, "<", math.inf, "Assumption 1"),
            Condition.of(name, rho, ">", least_penalty(L, convex), "Theorem 1, Corollary 1"),
            Condition.of(
                "γ > (S(1 + ρ²)(τ − 1)² − mρ)/2",
                options.gamma,
                ">",
                least_proximal(rho, m, m + 1, known.oldest),
                "Theorem 1",
            ),
        ],
        [
            Bound("ρ that suffices where f_i is scaled so that L = 1", f"{unit:.3g} L", unit * L, "Theorem 1"),
            Bound(
                "γ to go with it",
                "L(S(1 + (ρ/L)²)(τ − 1)² − mρ/L)/2",
                L * max(least_proximal(unit, m, m + 1, known.oldest), 0.0),
                "Theorem 1",
            ),
        ],
        [
            "Theorem 1 proves convergence to a stationary point, without a rate; f_i is not divided by m",
            "the conditions depend on the unit of f: f_i, ρ and γ times a number give the same models",
        ],
    )


TITLE = "Theorem 1 of AD-ADMM, arXiv:1509.02597"
