"""Lower bounds of time by A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization
methods under a fixed computation model", arXiv:2305.12387 (2023).

Client i needs τ_i seconds for one stochastic gradient, and messages take no time. Whatever a method does, there is an
L-smooth f with f(x⁰) − inf f <= Δ, and unbiased gradients of variance at most σ², for which it has no x with
E‖∇f(x)‖² <= ε in less than c times the number below. c is universal, and no number is known for it here.
The text was not at hand: the bounds are (2) and (3) of A. Tyurin's "Bridging the gap between homogeneous and
heterogeneous asynchronous optimization is surprisingly difficult", which says that they are attained up to a constant,
under its assumptions 1.1 and 1.4. They are Theorems 6.4 and A.2 by a review of arXiv:2408.04929. Not read: c, how small
ε must be beside LΔ, and the class of methods in words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

SOURCE = "Tyurin and Richtárik, arXiv:2305.12387"


class LeastTimeInputs(NamedTuple):
    """Constants of the bounds: τ (m,) seconds for a gradient of each client, L, Δ, σ²; ``same``: all f_i are one f.

    ``estimated`` says of some of these, by their names, how they were estimated; the others are known.
    """

    tau: Array
    L: float
    delta: float
    variance: float
    same: bool
    estimated: dict[str, str]


def homogeneous_bound(tau: Array | Sequence[float], L: float, delta: float, variance: float, eps: float) -> float:
    """Return min_j ((1/j) Σ_{i<=j} 1/τ_i)⁻¹ (LΔ/ε + σ²LΔ/(jε²)), τ rising, for clients that share one f.

    Attained by Rennala SGD and Ringmaster ASGD, up to a constant.
    """
    check_constants(L, delta, variance, eps)
    j = np.arange(1, len(tau) + 1)
    # the j fastest together give so many gradients a second
    rate = np.cumsum(1 / np.sort(np.asarray(tau, float)))
    return float(np.min((j + variance / eps) / rate) * L * delta / eps)


def heterogeneous_bound(tau: Array | Sequence[float], L: float, delta: float, variance: float, eps: float) -> float:
    """Return τ_m LΔ/ε + ((1/m) Σ τ_i) σ²LΔ/(mε²) for f = (1/m) Σ f_i, where client i has gradients of f_i alone.

    Attained by Malenia SGD, and by Ringleader ASGD where its L is of the order of that of f, up to a constant.
    """
    check_constants(L, delta, variance, eps)
    times = np.asarray(tau, float)
    return float((times.max() + times.mean() * variance / (len(times) * eps)) * L * delta / eps)


def lower_bound(setting: LeastTimeInputs, eps: float) -> float:
    """Return the lower bound for one f, or for different f_i; nan where a constant is not known."""
    bound_of = homogeneous_bound if setting.same else heterogeneous_bound
    return bound_of(setting.tau, setting.L, setting.delta, setting.variance, eps)


def bound_formula(same: bool) -> str:
    if same:
        return "min over j of ((1/j) Σ_{i<=j} 1/τ_i)⁻¹ (LΔ/ε + σ²LΔ/(jε²))"
    return "max τ_i LΔ/ε + ((1/m) Σ τ_i) σ²LΔ/(mε²)"


def check_constants(L: float, delta: float, variance: float, eps: float) -> None:
    """Raise ValueError for numbers that cannot be these constants; nan stands for one that is not known."""
    if not eps > 0:
        raise ValueError(f"ε = {eps:g} is wrong: it must be above 0")
    for name, value in {"L": L, "Δ": delta, "σ²": variance}.items():
        if value < 0:
            raise ValueError(f"{name} = {value:g} is wrong: it must not be below 0")
