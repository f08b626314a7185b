"""Constants of a study that theorems use, computed at the clients by evaluations that no ledger is charged for."""

import math

import numpy as np

from mpifed.core.typing import Array
from mpifed.features.certificate.minimum import find_minimum
from mpifed.features.penalty.proximal import find_penalty
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.theory.statements import Certificate, StudyConstants, is_convex

FEW = 1000  # largest n(1 + 2m), the order of the Lagrangian's Hessian, at which Hessians are computed
MINIMUM = "the minimum x*"
FINAL = "the final model"
FIRST = "the first model"


def bounds(config: Experiment, fed: Federation) -> tuple[Array | None, Array | None]:
    """Return r_i and lower bounds of curvature, (m,) each, or None for what the problem does not have."""
    problem, algorithm = config.problem, config.algorithm
    r = fed.inspect(algorithm.certify_smoothness) if problem.has("lipschitz") else None
    curved = problem.has("least_curvature") or problem.has("convexity")
    mu = fed.inspect(algorithm.certify_curvature) if curved else None
    return tuple(None if one is None else np.asarray(one, float) for one in (r, mu))  # type: ignore[return-value]


def compute_constants(
    config: Experiment, fed: Federation, sizes: Array, rounds: int, x: Array | None = None
) -> StudyConstants:
    """Compute the constants: at x* if every f_i is convex and smooth, else at the final model x (None: the first)."""
    algorithm, first = config.algorithm, fed.initial()
    r, mu = bounds(config, fed)
    at, point = (FIRST, first) if x is None else (FINAL, x.astype(fed.dtype))
    if r is not None and is_convex(r, mu):
        at = MINIMUM
        point = find_minimum(fed, algorithm, first).x.astype(fed.dtype)
    f0, _ = fed.inspect(algorithm.certify_objective, "sum", (first,))
    f, gradient = fed.inspect(algorithm.certify_objective, "sum", (point,))
    g0, _ = fed.inspect(algorithm.certify_gradients, args=(first,))
    g, largest = fed.inspect(algorithm.certify_gradients, args=(point,))
    mean = np.asarray(gradient, float) / fed.m
    h0, h, mean = with_penalty(fed, first, point, mean)
    return StudyConstants(
        m=fed.m,
        n=fed.n,
        d=np.asarray(sizes),
        clients_per_round=fed.clients_per_round if algorithm.participation.selections else fed.m,
        rounds=rounds,
        selection=config.selection.label() if config.asynchronous is None else "arrivals",
        logistic=config.problem.logistic_loss,
        r=r,
        mu=mu,
        f0=float(f0) / fed.m + h0,
        g0=np.asarray(g0, float),
        at=at,
        f=float(f) / fed.m + h,
        g=np.asarray(g, float),
        largest=float(largest.max()),
        gradient=float(mean @ mean),
        distance=float(np.sum(np.square(np.asarray(point - first, float)))) if at == MINIMUM else math.nan,
        hessians=hessians(config, fed, point) if at == MINIMUM else None,
        oldest=oldest(config, fed),
        penalised=config.objective.penalised,
    )


def with_penalty(fed: Federation, first: Array, x: Array, g: Array) -> tuple[float, float, Array]:
    """Return h at the first model and at x, and the residual at x in place of g = ∇f(x); without h: 0, 0, g."""
    penalty = find_penalty(fed)
    return (0.0, 0.0, g) if penalty is None else (penalty.value(first), penalty.value(x), penalty.residual(x, g))


def oldest(config: Experiment, fed: Federation) -> float:
    """Return the largest age in rounds of uploads that are used: 0 if all clients reply in every round."""
    if config.asynchronous is None:
        return 0.0 if fed.clients_per_round == fed.m or not config.algorithm.participation.selections else math.inf
    bound = config.asynchronous.staleness
    return math.inf if bound is None else float(bound)


def hessians(config: Experiment, fed: Federation, x: Array) -> Array | None:
    """Compute ∇²f_i(x) of all clients (m, n, n), a column per evaluation; None where the order exceeds FEW."""
    if not config.problem.has("hessian") or fed.n * (1 + 2 * fed.m) > FEW:
        return None
    columns = [fed.inspect(config.algorithm.certify_hessian, args=(x, v)) for v in np.eye(fed.n, dtype=fed.dtype)]
    return np.stack([np.asarray(column, float) for column in columns], axis=2)


def make_certificate(config: Experiment, known: StudyConstants) -> Certificate:
    """Return the certificate of an experiment's method, with the constants of the study."""
    return config.algorithm.certificate(known)._replace(constants=known.constants())
