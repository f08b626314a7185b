"""The minimiser of a convex f, by evaluations of all clients that no ledger is charged."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import minimize

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.cache import Cache
from mpifed.data.sample_columns import totals_of
from mpifed.experiment.prepare import gathered
from mpifed.experiment.settings import Experiment
from mpifed.federation.scaled_local import ScaledLocal
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess

GRADIENT = 1e-9  # largest entry of the gradient at the optimum


class Optimum(NamedTuple):
    """x* (n,) and f*."""

    x: Array
    f: float


def minimum(fed: Federation, algorithm: Algorithm, x: Array) -> Optimum:
    """Minimise f by L-BFGS from x (n,), if possible until no entry of ∇f exceeds GRADIENT."""

    def f(x: Array) -> tuple[float, Any]:
        value, gradient = fed.inspect(algorithm.certify_objective, "sum", (x.astype(fed.dtype),))
        return float(value) / fed.m, np.asarray(gradient, float) / fed.m

    found = minimize(
        f,
        x.astype(float),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": GRADIENT, "maxcor": 30},
    )
    return Optimum(found.x, float(found.fun))


def alone(config: Experiment, cache: Cache | None = None) -> tuple[Federation, Dataset]:
    """The federation of an experiment in this process, in double precision, before its first round, and its data.

    UserError for what does not go together, as before a run.
    """
    parts = gathered(msgspec.structs.replace(config, dtype="float64"), cache)
    host = parts.host
    assert host is not None
    if parts.setup.factors is not None:
        host.setup = parts.setup._replace(local=ScaledLocal)  # f itself, whatever a method computes with
    host.join()
    return Federation(InProcess(host), host.setup, parts.selector, totals_of(parts.data)), parts.data
