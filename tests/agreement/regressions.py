"""Fits of statsmodels and lifelines on the pooled samples, beside the command ``fit``."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.agreement.packages import (
    BINARY,
    CLIENT,
    COUNTS,
    EVENTS,
    NUMBERS,
    ONE,
    POSITIVE,
    SHIFTS,
    SURVIVAL,
    TIMES,
    WEIGHTS,
    WHERE,
    A,
    Found,
    measured,
    ours,
)
from tests.agreement.row import Row

REGRESSIONS = [
    ("least-squares", "OLS", NUMBERS),
    ({"name": "poisson", "bias": False}, "Poisson", COUNTS),
    ({"name": "gamma", "bias": False}, "Gamma", POSITIVE),
    ({"name": "logistic", "mu": 0.0}, "Logit", BINARY),
]


BOTH = {"frequency": WEIGHTS, "offset": SHIFTS}
# Problem, family of statsmodels, labels, weights and offsets.
ESTIMATES = "estimates, standard errors, log-likelihood"
COLUMNS: list[tuple[dict[str, object] | str, str, np.ndarray, dict[str, np.ndarray]]] = [
    ({"name": "poisson", "bias": False}, "Poisson", COUNTS, {"offset": SHIFTS}),
    ({"name": "poisson", "bias": False}, "Poisson", COUNTS, {"frequency": WEIGHTS}),
    ({"name": "poisson", "bias": False}, "Poisson", COUNTS, BOTH),
    ({"name": "gamma", "bias": False}, "Gamma", POSITIVE, BOTH),
    ({"name": "logistic", "mu": 0.0}, "Binomial", BINARY, BOTH),
    ("least-squares", "Gaussian", NUMBERS, BOTH),
]


def weighted(
    problem: dict[str, object] | str, name: str, labels: np.ndarray, columns: dict[str, np.ndarray]
) -> tuple[Found, Found]:
    """Coefficients and standard errors with weights and offsets of samples, and the log-likelihood."""
    import statsmodels.api as sm

    mine = ours(problem, ONE, labels, columns=columns).fit()
    link = {"link": sm.families.links.Log()} if name == "Gamma" else {}
    given = {"offset": columns.get("offset"), "freq_weights": columns.get("frequency")}
    theirs = sm.GLM(labels, ONE, getattr(sm.families, name)(**link), **given).fit(
        tol=1e-14, maxiter=99, tol_criterion="params"
    )
    return Found((mine.x, mine.error), mine.likelihood), Found((theirs.params, theirs.bse), theirs.llf)


def glm(problem: dict[str, object] | str, name: str, labels: np.ndarray) -> tuple[Found, Found]:
    """Coefficients, standard errors, those by client, and the log-likelihood in the place of f."""
    import statsmodels.api as sm

    mine = ours(problem, ONE, labels).fit()
    families = {"Poisson": sm.families.Poisson(), "Gamma": sm.families.Gamma(sm.families.links.Log())}
    if name in families:
        # not the deviance, the default: its last bit stands still while the coefficients are some 1e-8 off
        model, options = sm.GLM(labels, ONE, families[name]), {"tol": 1e-14, "maxiter": 99, "tol_criterion": "params"}
    elif name == "Logit":
        model, options = sm.Logit(labels, ONE), {"method": "newton", "tol": 1e-15, "disp": False}
    else:
        model, options = sm.OLS(labels, ONE), {}
    theirs = model.fit(**options)
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": CLIENT, "use_correction": False}}
    # The package leaves out m/(m − 1).
    by_client = model.fit(**options, **clusters).bse * np.sqrt(3 / 2)
    return Found((mine.x, mine.error, mine.robust), mine.likelihood), Found(
        (theirs.params, theirs.bse, by_client), theirs.llf
    )


def cox(ties: str) -> tuple[Found, Found]:
    """Coefficients and standard errors with a stratum for each client, and the partial log-likelihood."""
    import statsmodels.api as sm

    mine = ours({"name": "cox", "ties": ties}, A, SURVIVAL).fit()
    theirs = sm.PHReg(TIMES, A, EVENTS, strata=CLIENT, ties=ties).fit(method="newton", tol=1e-15, disp=False)
    return Found((mine.x, mine.error), mine.likelihood), Found((theirs.params, theirs.bse), theirs.llf)


def lifelines_cox() -> tuple[Found, Found]:
    import lifelines
    import pandas as pd

    mine = ours({"name": "cox", "ties": "efron"}, A, SURVIVAL).fit()
    frame = pd.DataFrame(A, columns=list("wxyz")).assign(t=TIMES, e=EVENTS, c=CLIENT)
    fitter = lifelines.CoxPHFitter()
    fitter.fit(frame, "t", "e", strata="c", fit_options={"precision": 1e-15})
    theirs = Found((fitter.params_.to_numpy(), fitter.standard_errors_.to_numpy()), fitter.log_likelihood_)
    return Found((mine.x, mine.error), mine.likelihood), theirs


def rows(scratch: Path) -> Iterator[Row]:
    """``scratch`` stays empty: data are in memory."""
    for problem, name, labels in REGRESSIONS:
        what = "estimates, standard errors, those by client, log-likelihood"
        beside = partial(glm, problem, name, labels)
        yield measured("newton and fit", "statsmodels", f"{name}: {what}, {WHERE}", beside)
    for problem, name, labels, columns in COLUMNS:
        what = f"{name}, {' and '.join(f'{column}s' for column in columns)} of samples: {ESTIMATES}, {WHERE}"
        what = what.replace("frequencys", "weights")
        yield measured("newton and fit", "statsmodels", what, partial(weighted, problem, name, labels, columns))
    what = f"estimates, standard errors, partial log-likelihood, {WHERE} as strata"
    for ties in ("breslow", "efron"):
        yield measured("newton and fit", "statsmodels", f"PHReg, {ties}: {what}", partial(cox, ties))
    yield measured("newton and fit", "lifelines", f"CoxPHFitter: {what}", lifelines_cox)
