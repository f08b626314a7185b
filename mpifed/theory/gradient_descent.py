"""Gradient descent on convex f, Theorems 2.1.14 and 2.1.15 of Y. Nesterov, "Introductory Lectures on Convex
Optimization", Springer (2004), doi:10.1007/978-1-4419-8853-9.

And ProxSkip with full gradients of all clients, K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes!
Local gradient steps provably lead to communication acceleration! Finally!", arXiv:2202.09357 (2022)."""

import math
from typing import Any

from mpifed.theory.statements import (
    Bound,
    Certificate,
    Condition,
    StudyConstants,
    no_theorem,
    smoothness,
    strong_convexity,
)

WHY = (
    "its theorems need bounds on variance or dissimilarity that a run does not show; "
    "with k0 = 1, all clients and a constant step it is gradient descent, which is certified"
)


def gd(options: Any, known: StudyConstants) -> Certificate:
    """Return the certificate of gradient descent with all clients and the given step, or 1/max r_i."""
    if known.clients_per_round < known.m:
        return no_theorem("gd", "its theorems are about steps with the gradients of all clients")
    gamma = options.gamma or 1 / known.L_max
    return proximal_certificate(known, gamma) if known.penalised else descent_certificate(known, gamma)


def fedavg(options: Any, known: StudyConstants) -> Certificate:
    """Return the certificate of gradient descent for FedAvg with one full gradient a round and a constant step."""
    # By name: theory stands below the room that has the optimizers, and imports nothing from it.
    sgd = type(options.optimizer).__name__ == "SGD" and not options.optimizer.clip
    once = options.k0 == 1 and not options.epochs and not options.batch_size and sgd
    constant = getattr(options.step, "a", math.nan) if options.step.label() == "constant" else math.nan
    if not once or known.clients_per_round < known.m or math.isnan(constant):
        return no_theorem("fedavg", WHY)
    return descent_certificate(known, constant / known.m if options.scale == "1/m" else constant)


def descent_certificate(known: StudyConstants, gamma: float) -> Certificate:
    """Return the theorems for x⁺ = x − γ∇f(x): 2.1.14 on f for γ < 2/L, 2.1.15 on x for γ <= 2/(μ + L)."""
    L = known.L_max
    mu = known.mu_min
    convexity = max(mu, 0)
    gap = known.f0 - known.f if known.convex else math.nan
    fall = "2(f⁰ − f*)‖x⁰ − x*‖²/(2‖x⁰ − x*‖² + Rγ(2 − Lγ)(f⁰ − f*))"
    twice = 2 * known.distance
    value = 2 * gap * known.distance / (twice + known.rounds * gamma * (2 - L * gamma) * gap) if gap > 0 else 0.0
    rate = 1 - 2 * gamma * convexity * L / (convexity + L)
    column = "objective_gap"
    return Certificate(
        "gradient descent, Theorems 2.1.14 and 2.1.15 of Nesterov (2004), doi:10.1007/978-1-4419-8853-9",
        [
            smoothness(known, "Theorem 2.1.14"),
            Condition.of("min α_i >= 0: every f_i is convex", mu, ">=", 0.0, "Theorem 2.1.14"),
            Condition.of("γ < 2/L", gamma, "<", 2 / L, "Theorem 2.1.14"),
            Condition.of("γ <= 2/(μ + L)", gamma, "<=", 2 / (convexity + L), "Theorem 2.1.15, for the linear rate"),
        ],
        [
            Bound("f − f* after R rounds", fall, value, "Theorem 2.1.14", "bound", column),
            Bound("‖x − x*‖² per round", "1 − 2γμL/(μ + L)", rate, "Theorem 2.1.15", "factor", column),
        ],
        ["L = max r_i and μ = min α_i are bounds for f too"],
    )


def proximal_certificate(known: StudyConstants, gamma: float) -> Certificate:
    """Return Theorem 3.1 of Beck and Teboulle for x⁺ = prox_{γh}(x − γ∇f(x)) on F = f + h, and a linear factor.

    The factor: F(x⁺) <= min_y F(y) + (1/γ − μ)‖y − x‖²/2, where y = x + γμ(x* − x) gives F − F* <= (1 − γμ)(F(x) − F*).
    """
    L = known.L_max
    mu = known.mu_min
    value = known.distance / (2 * gamma * known.rounds) if known.rounds else math.inf
    source = "Theorem 3.1"
    column = "objective_gap"
    return Certificate(
        "proximal gradient descent, Theorem 3.1 of Beck and Teboulle (2009), doi:10.1137/080716542",
        [
            smoothness(known, source),
            Condition.of("min α_i >= 0: every f_i is convex", mu, ">=", 0.0, source),
            Condition.of("γ <= 1/L", gamma, "<=", 1 / L, source),
        ],
        [
            Bound("F − F* after R rounds", "‖x⁰ − x*‖²/(2γR)", value, source, "bound", column),
            Bound("F − F* per round", "1 − γμ", 1 - gamma * max(mu, 0), "mpifed/theory", "factor", column),
        ],
        ["L = max r_i and μ = min α_i are bounds for f too; f and ‖∇f‖ above are those of F and of its residual"],
    )


def proxskip(options: Any, known: StudyConstants) -> Certificate:
    """Return the linear rate of Ψ = Σ ‖x_i − x*‖² + (γ/p)² Σ ‖h_i − ∇f_i(x*)‖² in expectation."""
    if known.clients_per_round < known.m or options.batch_size:
        return no_theorem("proxskip", "its theorem is about full gradients of all clients")
    L = known.L_max
    mu = known.mu_min
    gamma = options.gamma or 1 / L
    # The method's default gives γμ = p², so that steps and coins allow the same rate.
    p = options.p or (math.sqrt(mu / L) if mu > 0 else math.nan)
    source = "section 3, convergence of ProxSkip"
    return Certificate(
        "ProxSkip of Mishchenko et al. (2022), arXiv:2202.09357",
        [
            smoothness(known, source),
            strong_convexity(known, source),
            Condition.of("γ <= 1/max r_i", gamma, "<=", 1 / L, source),
        ],
        [Bound("E Ψ per local step", "1 − min(γμ, p²)", 1 - min(gamma * mu, p * p), source)],
        ["a round is 1/p local steps on average; the rate holds for the mean over coins, not for each run"],
    )
