"""Proof that AD-ADMM converges, the method of T. H. Chang, M. Hong, W. C. Liao, X. Wang, "Asynchronous distributed ADMM
for large-scale optimization, Part I: Algorithm and convergence analysis", arXiv:1509.02597 (2016).

The text of the paper was not at hand, so here is a proof. With 𝓛 = Σ f_i(x_i) + ⟨λ_i, x_i − x₀⟩ + (ρ/2)‖x_i − x₀‖², an
upload of client i from the model x̂₀, d = x̂₀ − x₀, changes 𝓛 by at most

    −((ρ − L)/2)‖Δx_i‖² + ρ⟨Δx_i, d⟩ + ‖Δλ_i‖²/ρ + ⟨Δλ_i, d⟩  ≤  −c‖Δx_i‖² + ((1 + ρ²)/2)‖d‖²,
    c = (ρ − L)/2 − L²/ρ − (1 + L²)/2,

because λ_i = −∇f_i(x_i) after an upload, from the second on; for convex f_i, ρ/2 stands for (ρ − L)/2. c > 0 is the
condition of ρ below. The server lowers 𝓛 by (γ + mρ/2)‖Δx₀‖². d is the sum of at most τ − 1 steps Δx₀, and every step
is in d of at most S(τ − 1) uploads, so that all d together cost at most S(τ − 1)²(1 + ρ²)/2 times Σ ‖Δx₀‖²: the
condition of γ. If both hold and Σ f_i is bounded below, so is 𝓛, all steps go to 0, and so does Σ ∇f_i(x₀).
With a convex h >= 0 the server minimises 𝓛 + m h, which its step lowers by as much, since its modulus of convexity is
not smaller; the rest of the proof is about clients. Then x₀ − prox_h(x₀ − (1/m) Σ ∇f_i(x₀)) goes to 0."""

import math
from typing import Any

from mpifed.theory.statements import Bound, Certificate, Condition, StudyConstants, smoothness


def minimum_penalty(L: float, convex: bool) -> float:
    """Return ((1 + L + L²) + √((1 + L + L²)² + 8L²))/2, which ρ must exceed; convex f_i: without the summand L."""
    b = 1 + L**2 + (0 if convex else L)
    return (b + math.sqrt(b**2 + 8 * L**2)) / 2


def minimum_proximal_weight(rho: float, m: int, S: int, age: float) -> float:
    """Return (S(1 + ρ²)(τ − 1)² − mρ)/2, where at most S uploads arrive, at most τ − 1 = ``age`` rounds old."""
    return (S * (1 + rho**2) * age**2 - m * rho) / 2 if math.isfinite(age) else math.inf


def certificate(options: Any, known: StudyConstants) -> Certificate:
    """Return the conditions for the options of AD-ADMM; S = m + 1 covers any number of arrivals."""
    if known.r is None:
        return Certificate(TITLE, [smoothness(known, "the proof")], [], [])
    L = known.L_max
    convex = known.convex
    rho = options.penalty(L)
    summands = "convex f_i: (1 + L²)" if convex else "(1 + L + L²)"
    name = f"ρ > (b + √(b² + 8L²))/2, b = {summands}"
    proof = "the proof"
    arrivals = known.m + 1, known.oldest
    gamma = minimum_proximal_weight(rho, known.m, *arrivals)
    unit = minimum_penalty(1.0, convex)
    gamma_of_unit = L * max(minimum_proximal_weight(unit, known.m, *arrivals), 0.0)
    return Certificate(
        TITLE,
        [
            smoothness(known, proof),
            Condition.of("oldest upload in rounds, τ − 1 < ∞", known.oldest, "<", math.inf, proof),
            Condition.of(name, rho, ">", minimum_penalty(L, convex), proof),
            Condition.of("γ > (S(1 + ρ²)(τ − 1)² − mρ)/2", options.gamma, ">", gamma, proof),
        ],
        [
            Bound("ρ that suffices where f_i is scaled so that L = 1", f"{unit:.3g} L", unit * L, proof),
            Bound("γ to go with it", "L(S(1 + (ρ/L)²)(τ − 1)² − mρ/L)/2", gamma_of_unit, proof),
        ],
        [
            "to a stationary point, without a rate; f_i is not divided by m; the proof is in mpifed/theory/ad_admm.py",
            "the conditions depend on the unit of f: f_i, ρ and γ times a number give the same models",
        ],
    )


TITLE = "convergence of AD-ADMM, arXiv:1509.02597"
