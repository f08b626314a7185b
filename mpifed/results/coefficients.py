"""Coefficients of a fit, with their standard errors, tests and intervals."""

import math
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.results.result import RunRecord

LEVEL = 0.95  # of the intervals


class Fit(NamedTuple):
    """Coefficients with their standard errors, tests and intervals; NaN where the study does not tell.

    ``error`` (n,): standard errors √(φ diag(H⁻¹)/d), of d samples with dispersion φ; with sample weights, d is their
    sum. H is ∇²f(x), in gamma regression its mean over labels. ``robust`` (n,): standard errors by client, from H⁻¹ (Σ
    p_i² g_i g_iᵀ) H⁻¹ · m/(m − 1), with H = ∇²f(x) and g_i = ∇f_i(x): valid also where the samples of a client depend
    on each other. ``statistic``, ``p``, ``low``, ``high`` (n,) follow from ``error``, or from ``robust`` where there is
    none, by the normal law, for normal labels by Student's with d − n degrees of freedom. φ is Pearson's statistic/(d −
    n) where it is estimated; the log-likelihood has that φ too, that of normal labels the variance ‖r‖²/d, where it is
    largest. AIC is 2n − 2 log-likelihood: φ does not count. All of this is as in the summaries of statsmodels' OLS and
    GLM.

    ``penalised``: of F = f + h with a penalty h. Then ``f`` is F(x), ``gradient`` is ‖x − prox(x − ∇f(x))‖, ``zeros``
    is the number of coefficients that are 0, and ``gap`` bounds F(x) − F*; there are no standard errors.

    ``x`` and its errors and intervals are in the units of the table, also where the run had ``data.standardise``,
    except "own". Then ``gradient`` and ``distance`` are those of the standardised features, as ``Result.x`` is.

    ``ratio``: the meaning of e^x, such as an odds ratio; empty where it has none. ``ratios()`` returns them with
    intervals.
    """

    names: list[str]
    x: Array
    error: Array
    robust: Array
    statistic: Array
    p: Array
    low: Array
    high: Array
    law: str  # z or t
    samples: int
    clients: int
    dispersion: float
    likelihood: float  # the logarithm
    aic: float
    f: float
    gradient: float  # ‖∇f(x)‖
    distance: float  # bound of ‖x − x*‖, where f is strongly convex, else NaN
    decrement: float  # √(∇fᵀ ∇²f⁻¹ ∇f): f is about half its square above f*
    rounds: int
    bytes: int  # of the run, up and down
    hessian_bytes: int  # of ∇²f_i and ∇f_i from all clients, once
    notes: list[str]
    penalised: bool = False
    zeros: int = 0
    gap: float = math.nan
    ratio: str = ""
    intercepts: int = 0  # number of intercepts, which are the last coefficients
    step: Array = np.zeros(0)  # Newton step from x (n,): about the distance to the optimum
    standardised: bool = False  # x was converted to the units of the table; f, gradient and distance were not

    def ratios(self) -> Array:
        """Return e^x, e^low and e^high (n, 3), with NaN for an intercept and where the number is not finite."""
        with np.errstate(over="ignore"):
            ratios = np.exp(np.column_stack([self.x, self.low, self.high]))
        ratios[len(ratios) - self.intercepts :] = np.nan
        return np.where(np.isfinite(ratios), ratios, np.nan)


def total_bytes(result: RunRecord) -> int:
    """Return the bytes that a run sent, up and down. UserError where the result has no such number."""
    last = [result.rounds[f"bytes_{way}"][-1] for way in ("up", "down")]
    if not all(0 <= size < np.inf for size in last):
        raise UserError(f"the result has {last[0]} bytes up and {last[1]} bytes down in its last round")
    return int(last[0]) + int(last[1])
