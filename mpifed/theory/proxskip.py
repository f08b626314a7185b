"""ProxSkip with full gradients of all clients, K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes!
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


def certificate(options: Any, known: StudyConstants) -> Certificate:
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
