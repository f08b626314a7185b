"""What is known of the coefficients of a fit."""

import math
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.results.result import Result

LEVEL = 0.95  # of the intervals


class Fit(NamedTuple):
    """Coefficients and what is known of them; NaN where the study does not tell.

    ``error`` (n,): standard errors √(φ diag(H⁻¹)/d), of d samples with dispersion φ; weights of these add up in
    place of d. H is ∇²f(x), of gamma regression its mean over labels. ``robust`` (n,): those of H⁻¹ (Σ p_i² g_i
    g_iᵀ) H⁻¹ · m/(m − 1), with H = ∇²f(x) and g_i = ∇f_i(x): right too where the samples of a client depend on each
    other. ``statistic``, ``p``, ``low``, ``high`` (n,) are of ``error``, or of ``robust`` where there is none; by
    the normal law, for normal labels by Student's with d − n degrees of freedom. φ is Pearson's statistic/(d − n)
    where it is estimated; the log-likelihood has that φ too, that of normal labels the variance ‖r‖²/d, where it is
    largest. AIC is 2n − 2 log-likelihood: φ does not count. All of this is as in the summaries of statsmodels' OLS
    and GLM.

    ``penalised``: of F = f + h with a penalty h. Then ``f`` is F(x), ``gradient`` is ‖x − prox(x − ∇f(x))‖, ``zeros``
    is the number of coefficients that are 0, and ``gap`` bounds F(x) − F*; there are no standard errors.

    ``x`` and what is of it are in the units of the table, also where the run had ``data.standardise``, "own" excepted:
    then ``gradient`` and ``distance`` are those of the standardised features, as ``Result.x`` is.

    ``ratio``: what e^x is, such as an odds ratio; empty where it is nothing. ``ratios()`` has them with intervals.
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
    intercepts: int = 0  # of the coefficients, the last ones
    step: Array = np.zeros(0)  # Newton's from x (n,): how far the optimum is, about
    standardised: bool = False  # whether x is brought to the units of the table; f, gradient and distance are not

    def ratios(self) -> Array:
        """e^x and its interval, e^low and e^high: (n, 3); NaN for an intercept, and where it is no finite number."""
        with np.errstate(over="ignore"):
            found = np.exp(np.column_stack([self.x, self.low, self.high]))
        found[len(found) - self.intercepts :] = np.nan
        return np.where(np.isfinite(found), found, np.nan)


def sent(result: Result) -> int:
    """The bytes of a run, up and down. UserError where the result has no such number."""
    last = [result.rounds[f"bytes_{way}"][-1] for way in ("up", "down")]
    if not all(0 <= size < np.inf for size in last):
        raise UserError(f"the result has {last[0]} bytes up and {last[1]} bytes down in its last round")
    return int(last[0]) + int(last[1])
