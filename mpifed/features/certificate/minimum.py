"""Minimiser of a convex f, found by evaluations of all clients that no ledger is charged for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.typing import Array
from mpifed.features.penalty.proximal import ElasticNetPenalty, find_penalty
from mpifed.federation.server import Federation

GRADIENT = 1e-9  # largest entry of the gradient at the optimum
ValueGradient = Callable[[Array], tuple[float, Any]]  # x -> f(x), ∇f(x)


class Optimum(NamedTuple):
    """Minimiser x* (n,) and minimum f*."""

    x: Array
    f: float


def find_minimum(fed: Federation, algorithm: Algorithm, x: Array) -> Optimum:
    """Minimise f, or F = f + h, by L-BFGS from x (n,), if possible until no entry of ∇f exceeds GRADIENT."""

    def f(x: Array) -> tuple[float, Any]:
        value, gradient = fed.inspect(algorithm.certify_objective, "sum", (x.astype(fed.dtype),))
        return float(value) / fed.m, np.asarray(gradient, float) / fed.m

    penalty = find_penalty(fed)
    if penalty is None:
        solution = lbfgs(f, x.astype(float))
        return Optimum(solution.x, float(solution.fun))
    return split_minimum(f, penalty, x.astype(float))


def lbfgs(f: ValueGradient, x: Array, bounds: Bounds | None = None) -> Any:
    """Return the result of scipy's L-BFGS-B from x."""
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": GRADIENT, "maxcor": 30}
    return minimize(f, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def split_minimum(f: ValueGradient, penalty: ElasticNetPenalty, x: Array) -> Optimum:
    """Minimise f + h over x = u − v with u, v >= 0, where ‖x‖₁ is Σ (u_j + v_j) and smooth; v_j = 0 without l1.

    Source: M. Schmidt, G. Fung, R. Rosales, "Fast optimization methods for L1 regularization: a comparative study and
    two new approaches", ECML 2007, doi:10.1007/978-3-540-74958-5_28, on bound-constrained formulations.
    """
    n = len(x)
    sparse = penalty.l1 > 0
    low = np.concatenate([np.where(sparse, 0.0, -np.inf), np.zeros(n)])
    high = np.concatenate([np.full(n, np.inf), np.where(sparse, np.inf, 0.0)])

    def split(uv: Array) -> tuple[float, Array]:
        u, v = np.split(uv, 2)
        value, gradient = f(u - v)
        slope = gradient + penalty.l2 * (u - v)
        value += float(penalty.l1 @ (u + v) + penalty.l2 @ (u - v) ** 2 / 2)
        return value, np.concatenate([slope + penalty.l1, penalty.l1 - slope])

    first = np.concatenate([np.where(sparse, np.maximum(x, 0), x), np.where(sparse, np.maximum(-x, 0), 0)])
    uv = lbfgs(split, first, Bounds(low, high)).x
    minimiser = uv[:n] - uv[n:]
    return Optimum(minimiser, f(minimiser)[0] + penalty.value(minimiser))
