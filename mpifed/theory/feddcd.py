"""The theorems of sections 4 to 7 of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated learning",
arXiv:2201.11183 (2022)."""

import math
from typing import Any, NamedTuple

from mpifed.theory.statements import Bound, Certificate, Condition, StudyConstants, smoothness, strong_convexity

STEPS = 20  # fewer Newton steps may end before the tolerance
RANDOM = "E‖w_i − w*‖² of a random client"  # the name of (4), (9) and (11)
EXACT = 1e-6  # a Newton method with ‖∇f_i − y_i‖ below this share of ‖∇f_i(x⁰)‖ counts as exact


class Quantities(NamedTuple):
    """Constants of the theorems: α (nan unless positive), β, N clients of which τ are selected, η, Σ ‖∇f_i(w*)‖²."""

    alpha: float
    beta: float
    N: int
    tau: int
    eta: float
    y: float
    rounds: int

    @property
    def r(self) -> float:
        """Ratio (τ − 1)/(N − 1)."""
        return (self.tau - 1) / max(self.N - 1, 1)


def contraction_factor(r: float, alpha: float, beta: float) -> float:
    """Return the factor of E G − G* per iteration: 1 − r α/β.  (3)"""
    return 1 - r * alpha / beta


def momentum_weight(r: float, ratio: float) -> float:
    """Return a = √κ/(1/r + √κ) of AccFedDCD with κ = ``ratio``, α/β in the paper.  (Algorithm 2)"""
    root = math.sqrt(ratio)
    return root / (1 / r + root)


def missing_term(a: float, r: float, ratio: float, alpha: float, y: float) -> float:
    """Return (a² + b)/(2r²α)·‖y*‖² with b = κ a r², the term at z⁰ = 0 that (10) leaves out."""
    return (a**2 + ratio * a * r**2) / (2 * r**2 * alpha) * y


def distance_bound(first: float, N: int, alpha: float, factor: float, rounds: Any) -> Any:
    """Return the bound (2/(Nα)) factor^T · first of E‖w − w*‖², first >= G(y⁰) − G*.  (4), (11), Lemma E.1"""
    return 2 / (N * alpha) * first * factor**rounds


def common_conditions(q: Quantities, options: Any, known: StudyConstants) -> list[Condition]:
    """Return the conditions of all three theorems."""
    common = float(options.scaling == "common")
    uniform = {"all": 1.0, "uniform": 1.0}.get(known.selection, 0.0)
    return [
        strong_convexity(known, "Assumption 3.1"),
        smoothness(known, "Assumption 3.2"),
        Condition.of("τ >= 2", q.tau, ">=", 2, "Assumption 3.4"),
        Condition.of("uniform selection (1: yes)", uniform, "=", 1, "Assumption 3.4"),
        Condition.of("Λ = I/α (1: yes)", common, "=", 1, "Theorems 4.1, 5.2, 6.1"),
    ]


def quantities(options: Any, known: StudyConstants) -> Quantities:
    """Return the constants as the method uses them: α = min α_i, β = max r_i."""
    alpha = known.mu_min if known.mu_min > 0 else math.nan
    y = float(known.g.sum()) if known.convex else math.nan
    return Quantities(alpha, known.L_max, known.m, known.clients_per_round, options.eta, y, known.rounds)


def model_remarks(model: str, number: str) -> list[str]:
    """Return a remark where the recorded model is not the one that the bound ``number`` is about."""
    mean = f"{number} is about w_i of a random client; the recorded model is the mean of the round's w_i"
    return [mean] if model == "mean" else []


def feddcd(options: Any, known: StudyConstants) -> Certificate:
    """Return the conditions for FedDCD's options: Theorem 5.2 for a solver with an accuracy δ, else Theorem 4.1."""
    q = quantities(options, known)
    if getattr(options.solver, "delta", None) is not None:
        return inexact_certificate(q, options, known)
    rate = contraction_factor(q.r, q.alpha, q.beta)
    bound = distance_bound(q.y / (2 * q.alpha), q.N, q.alpha, rate, q.rounds)
    return Certificate(
        "Theorem 4.1 of FedDCD, arXiv:2201.11183",
        [
            *common_conditions(q, options, known),
            Condition.of("η = 1", q.eta, "=", 1, "Algorithm 1 with Λ = I/α; Lemma B.8"),
            oracle_condition(options.solver, known),
        ],
        [
            Bound("E G(y) − G* per round", "1 − (τ−1)/(N−1) · α/β", rate, "(3)", "factor", "dual_objective"),
            Bound(RANDOM, "(1/(Nα²)) · factor^R · Σ ‖∇f_i(w*)‖²", bound, "(4)", "bound"),
        ],
        model_remarks(options.model, "(4)"),
    )


def oracle_condition(solver: Any, known: StudyConstants) -> Condition:
    """Return the condition that (1) is solved exactly, by enough Newton steps to a small gradient."""
    scale = math.sqrt(float(known.g0.mean()))
    enough_steps = getattr(solver, "steps", STEPS) >= STEPS
    relative_tol = getattr(solver, "tol", math.nan) / scale if scale and enough_steps else math.nan
    return Condition.of(
        "tolerance of (1) over ‖∇f_i(x⁰)‖ <= 1e-6", relative_tol, "<=", EXACT, "(1): an exact minimiser"
    )


def inexact_certificate(q: Quantities, options: Any, known: StudyConstants) -> Certificate:
    delta = options.solver.delta
    small = q.r * q.alpha / (32 * q.beta)  # κ = (τ − 1)α/(32 (N − 1) β)
    largest_delta = (1 - small) / 4
    value = largest_delta if delta == "theorem" else float(delta)
    bound = 20 / (3 * q.N * q.alpha**2) * q.y * (1 - small) ** q.rounds
    return Certificate(
        "Theorem 5.2 of FedDCD with inexact gradients, arXiv:2201.11183",
        [
            *common_conditions(q, options, known),
            Condition.of("η = 1/4", q.eta, "=", 0.25, "Theorem 5.2"),
            Condition.of("δ <= (1 − κ)/4", value, "<=", largest_delta, "Theorem 5.2, Definition 5.1"),
        ],
        [
            Bound("E G(y) − G* per round", "1 − (τ−1)α/(32 (N−1) β)", 1 - small, "(8)", "factor", "dual_objective"),
            Bound(RANDOM, "20/(3Nα²) · factor^R · Σ ‖∇f_i(w*)‖²", bound, "(9)", "bound"),
        ],
        model_remarks(options.model, "(9)"),
    )


def accfeddcd(options: Any, known: StudyConstants) -> Certificate:
    """Return the conditions for the options of AccFedDCD, with the Lyapunov function in place of (10)."""
    q = quantities(options, known)
    ratio = q.alpha / q.beta
    r = options.r or q.r
    kappa = options.kappa or ratio
    a = momentum_weight(r, kappa) if kappa > 0 else math.nan
    first = q.y / (2 * q.alpha) + missing_term(a, r, kappa, q.alpha, q.y)
    bound = distance_bound(first, q.N, q.alpha, 1 - a, q.rounds)
    formula = "2/(Nα) · factor^R · ((1/(2α) + (a² + b)/(2r²α)) Σ ‖∇f_i(w*)‖²"
    source = "proof of Theorem D.1"
    lyapunov = "G − G* + (a² + b)/(2r²α)·‖z − y*‖²"
    return Certificate(
        "Theorem 6.1 of AccFedDCD, arXiv:2201.11183, with the term that (10) leaves out",
        [
            *common_conditions(q, options, known),
            Condition.of("η = 1", q.eta, "=", 1, "Algorithm 2"),
            Condition.of("r = (τ−1)/(N−1)", r, "=", q.r, "Algorithm 2"),
            Condition.of("κ <= α/β", kappa, "<=", ratio, "Algorithm 2, Theorem D.1"),
            oracle_condition(options.solver, known),
        ],
        [
            Bound(f"E[{lyapunov}] per round", "1 − √κ/(1/r + √κ)", 1 - a, source, "factor", "dual_objective"),
            Bound(RANDOM, formula, bound, "(11) with the missing term", "bound"),
        ],
        [
            "(10) is false as printed: it leaves out the term in z; what holds is the same factor for "
            f"{lyapunov}; a round is two exchanges",
            "no theorem is about (1) solved inexactly",
        ],
    )
