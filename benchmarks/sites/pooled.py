"""The same regressions by statsmodels on all rows together: the matrix is made by pandas, not by mpifed."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.sites.natural import Site
from mpifed.core.typing import Array


class Pooled(NamedTuple):
    """Coefficients and standard errors (n,), and the log-likelihood."""

    x: Array
    error: Array
    likelihood: float


def design(site: Site, frame: Any) -> tuple[list[str], Array]:
    """The names and values (d, n) of the columns, each category without its first level, and ones last."""
    from pandas.api.types import is_numeric_dtype

    names, columns = [], []
    for feature in site.features:
        values = frame[feature]
        if is_numeric_dtype(values) and feature not in site.categories:
            names.append(feature)
            columns.append(values.to_numpy(float))
            continue
        for level in sorted(values.unique())[1:]:
            names.append(f"{feature}={level}")
            columns.append((values == level).to_numpy(float))
    if site.problem != "cox":
        names.append("intercept")
        columns.append(np.ones(len(frame)))
    return names, np.column_stack(columns)


def pooled(site: Site, frame: Any) -> Pooled:
    """The fit of statsmodels, converged as far as it can be."""
    import statsmodels.api as sm  # type: ignore[import-untyped,unused-ignore]

    X = design(site, frame)[1]
    y = frame[site.target].to_numpy()
    exact = {"tol": 1e-15, "maxiter": 100}
    if site.problem == "cox":
        model = sm.PHReg(y.astype(float), X, frame[site.event], strata=frame[site.client].astype(str), ties="efron")
        found = model.fit(method="newton", disp=0, **exact)
        return Pooled(found.params, found.bse, found.llf)
    if site.problem == "least-squares":
        found = sm.OLS(y, X).fit()
    elif site.problem == "logistic":
        found = sm.Logit((y == np.unique(y)[1]).astype(float), X).fit(method="newton", disp=0, **exact)
    else:
        family = sm.families.Poisson() if site.problem == "poisson" else sm.families.Gamma(sm.families.links.Log())
        found = sm.GLM(y, X, family).fit(**exact)
        found = sm.GLM(y, X, family).fit(start_params=found.params, **exact)
    return Pooled(found.params, found.bse, float(found.llf))
