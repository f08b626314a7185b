"""What Theorems 1 and 2 and Lemmas 1 and 3 of FLAME say about a run of ``variants.Checked``.

Notation: α = 1/m, a = λα, L the largest r_i, s selected clients. Every function takes the numbers of the rounds from
the result file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpifed import Result, UserError, load
from mpifed.extend import Array
from mpifed.theory import flame


class Constants(NamedTuple):
    """The constants of a run in the notation of the paper; ``divisor`` is what (38) divides ε by."""

    alpha: float
    a: float
    rho: float
    L: float
    divisor: float  # (1/ρ² − 1)a² − (Lα + ρ)/2
    c1: float  # (a + ρ)/2 − a²(1 + ρ)/ρ²
    c2: float
    c3: float


def constants(result: Result) -> Constants:
    """α, λα, ρ, L and c1, c2, c3 of Theorem 2."""
    table = result.config["algorithm"]
    lam, rho = float(table["lam"]), float(table["rho"])
    alpha = 1 / result.m
    L = last(result, "smoothest")
    a = lam * alpha
    c1, c2 = flame.c1(lam, rho, alpha), flame.c2(lam, rho, alpha, L)
    c3 = 2 + c2 * flame.c0(lam, rho, alpha, L) / c1
    return Constants(alpha, a, rho, L, flame.divisor(lam, rho, alpha, L), c1, c2, c3)


def rows(result: Result, name: str) -> Array:
    """A column of the rounds."""
    return np.asarray(result.rounds[name], float)


def last(result: Result, name: str) -> float:
    """Its last value."""
    return float(rows(result, name)[-1])


def condition(result: Result) -> float:
    """c1, which Lemma 1 and Theorem 2 ask to be above 0."""
    return constants(result).c1


def divisor(result: Result) -> float:
    """The divisor of (38), which its inequality of Young needs above 0; no statement asks for it."""
    return constants(result).divisor


def descent(result: Result, theta: float, w: float, error: float) -> float:
    """The largest L^{t+1} − L^t − Σ (theta ‖Δθ_i‖² + w ‖Δw_i‖² + error ε_i) over the rounds, divided by L⁰ − L^T."""
    values = rows(result, "lagrangian")
    parts = {"moved_theta": theta, "moved_w": w, "error": error}
    bound = sum(factor * np.diff(rows(result, name)) for name, factor in parts.items())
    return float((np.diff(values) - bound).max() / (values[0] - values[-1]))


def printed(result: Result) -> float:
    """``descent`` with the constants of (16): at most 0.  (Lemma 1)"""
    c = constants(result)
    return descent(result, -c.c1, -c.c1, c.alpha**2 / c.divisor)


def mended(result: Result) -> float:
    """``descent`` with the constants that (35)–(37) and the smoothness of f_i give: at most 0, for any L and ρ.

    a²(1 + ρ)/ρ − 3a/8, plus Lα/2 where f_i is not convex, for θ_i; −c1 for w_i; 2/a for ε_i. It is (36), (37) and
    α⟨∇_θ L_i(θ_i⁺), Δθ_i⟩ <= (a/8)‖Δθ_i‖² + 2ε_i/a in place of the last step of (38).
    """
    c = constants(result)
    curved = 0.0 if result.config["algorithm"].get("convex", True) else c.L * c.alpha / 2
    return descent(result, c.a**2 * (1 + c.rho) / c.rho - 3 * c.a / 8 + curved, -c.c1, 2 / c.a)


def floor(result: Result) -> float:
    """The largest (6) − L^t, divided by L⁰ − L^T: at most 0 if ρ >= λα.  (Lemma 3)"""
    values = rows(result, "lagrangian")
    return float((rows(result, "envelope") - values).max() / (values[0] - values[-1]))


def average(result: Result) -> Array:
    """(1/mT) Σ_{t<T} ‖∇L(P^t)‖² by T; ∇_w L is 0 by (12). With biased selection only the part ∇_θ L of (20)."""
    names = ["slope_theta"] if selection(result) == "biased" else ["slope_theta", "slope_w", "slope_pi"]
    slopes = np.cumsum(sum(rows(result, name) for name in names))[:-1]
    return np.concatenate([[np.nan], slopes / (result.m * np.arange(1, len(slopes) + 1))])


def bound(result: Result) -> Array:
    """c2/(c1 s T)·(L⁰ − L^T) + c3 ε_max by T.  (19); (20) with γ̄ = 1, the least skew of a selection of large updates"""
    c, values = constants(result), rows(result, "lagrangian")
    T, gone = np.arange(1, len(values)), values[0] - values[1:]
    found = c.c2 / c.c1 * gone / (cohort(result) * T) + c.c3 * last(result, "worst")
    return np.concatenate([[np.nan], found])


def ratios(result: Result) -> Array:
    """``average`` divided by ``bound`` by T: at most 1; inf where the bound is not positive.  (Theorem 2)"""
    above = bound(result)
    with np.errstate(invalid="ignore"):
        return np.where(above <= 0, np.inf, average(result) / above)


def ratio(result: Result) -> float:
    """The largest of ``ratios``."""
    return float(np.nanmax(ratios(result)))


def selection(result: Result) -> str:
    """The name of the selection."""
    return str(result.config["selection"]["name"])


def cohort(result: Result) -> int:
    """s, the number of clients that are selected in a round."""
    table = result.config["selection"]
    return int(table["count"]) if table.get("count") else result.m


def ending(name: str) -> Callable[[Result], float]:
    """The last value of a column that holds a maximum."""
    return lambda result: last(result, name)


MEASURES = {
    "condition_c1": condition,
    "divisor_of_38": divisor,
    "lemma1_excess": printed,
    "mended_excess": mended,
    "lemma3_excess": floor,
    "measured_over_bound": ratio,
    "below_14": ending("lower"),
    "above_14": ending("upper"),
}
COLUMNS: dict[str, Callable[[Result], Array]] = {
    "gradient_average": average,
    "bound": bound,
    "measured_over_bound": ratios,
}


ROWS = ("fedadmm", "flame-local-centre", "flame-common-start", "pfedme-common-start", "flame", "pfedme", "fedavg")


def late(name: str) -> Callable[[Result], Array]:
    """The column ``name`` one round late: round r has the value of round r − 1, round 0 nan. Source: errata, FLAME."""

    def column(result: Result) -> Array:
        return np.concatenate([[np.nan], np.asarray(result.rounds[name], float)[:-1]])

    return column


def gap(result: Result) -> Array:
    """The advantage of the personal models: f(w) − (1/m) Σ_i f_i(θ_i). Source: flame, sections 5.2.2 and 5.2.6."""
    return np.asarray(result.rounds["objective"] - result.rounds["personal_objective"], float)


def stale(result: Result) -> float:
    """max_r |released_accuracy(r) − accuracy(r − 1)|: the effect of models older than one round."""
    return float(np.nanmax(np.abs(result.rounds["released_accuracy"] - late("accuracy")(result))))


def speedup(result: Result) -> float:
    """Rounds of FedAvg in the same block with the same seed, divided by the rounds of this run.

    A run that hit the round limit counts with the limit; nan if the run of FedAvg is missing.
    Source: flame, Table III, the factors in brackets.
    """
    if result.path is None:
        return float("nan")
    path = Path(result.path)
    others = [
        path.with_name(path.name.replace(f"-{row}-seed-", "-fedavg-seed-"))
        for row in ROWS
        if f"-{row}-seed-" in path.name
    ]
    try:
        return load(others[0]).cr / result.cr if others else float("nan")
    except UserError:
        return float("nan")


MEASURES |= {"speedup": speedup, "stale": stale}
COLUMNS |= {"late_accuracy": late("accuracy"), "gap": gap}
