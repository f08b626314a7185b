"""Fits of every likelihood beside the numbers of statsmodels 0.15.0 and lifelines 0.30.3 on the pooled samples.

They were computed by

    import lifelines, pandas as pd, statsmodels.api as sm
    ols = sm.OLS(TIMES, A).fit()
    poisson = sm.GLM(COUNTS, A, sm.families.Poisson()).fit(tol=1e-14, maxiter=99)
    gamma = sm.GLM(POSITIVE, A, sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-14, maxiter=99)
    logit = sm.Logit(CLASSES, A).fit(method="newton", tol=1e-14)
    for one in (ols, poisson, gamma, logit):
        by_client = type(one.model)(…).fit(…, cov_type="cluster",
                                           cov_kwds={"groups": CLIENT, "use_correction": False})
        print(one.params, one.bse, by_client.bse, one.llf, one.aic)
    for ties in ("breslow", "efron"):
        cox = sm.PHReg(TIMES, A[:, :2], EVENTS, strata=CLIENT, ties=ties).fit()
        print(cox.params, cox.bse, cox.llf)
    for more in ({}, {"exposure": EXPOSURE}):
        sm.GLM(COUNTS, A, sm.families.NegativeBinomial(alpha=0.5), **more).fit(tol=1e-14, maxiter=99)  # and by client
    frame = pd.DataFrame({"u": A[:, 0], "v": A[:, 1], "t": TIMES, "e": EVENTS, "c": CLIENT})
    lifelines.CoxPHFitter().fit(frame, "t", "e", strata="c", fit_options={"precision": 1e-14}).AIC_partial_
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import mpifed

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
SIZES = (12, 20, 28)
CLIENT = np.repeat(range(3), SIZES)
K = np.arange(60)
A = np.column_stack([np.round(np.sin(K), 3), np.round(np.cos(1.7 * K), 3), np.ones(60)])
COUNTS = np.maximum(np.floor(2.55 + 2 * np.sin(K) + 1.5 * np.cos(5 * K)), 0)
POSITIVE = np.round(np.exp(0.4 * np.sin(K)) + 0.9 * np.abs(np.sin(2.3 * K)) - 0.3, 3)
CLASSES = (np.sin(K) + 2 * np.sin(7 * K) > 0).astype(float)
TIMES = 1 + np.floor(10 * np.abs(np.cos(0.9 * K)))
EVENTS = (K % 3 > 0).astype(float)


def rows(text):
    """The rows of numbers behind the names in a text; a semicolon ends a row, and further lines are indented."""
    found = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        name, _, numbers = entry.partition(":")
        found[name] = [[float(one) for one in row.split()] for row in numbers.split(";")]
    return found


PROBLEMS = {
    "least-squares": ("least-squares", TIMES),
    "poisson": ({"name": "poisson", "bias": False}, COUNTS),
    "gamma": ({"name": "gamma", "bias": False}, POSITIVE),
    "logistic": ({"name": "logistic", "mu": 0.0}, CLASSES),
}
# coefficients; standard errors; those by client; log-likelihood and AIC
REFERENCE = rows("""
least-squares: -0.120564137234 -0.206709994842 6.90694118465; 0.556570561499 0.550396214067 0.392574036017;
    0.21033124027 0.953203133256 0.141657047512; -150.248518787 306.497037575
poisson: 0.86081530962 -0.00381426588702 0.609349148384; 0.141701798404 0.121116551061 0.104416010889;
    0.09723451729 0.0609359344432 0.0580592487545; -89.7199212838 185.439842568
gamma: 0.331435766893 -0.266906236854 0.228797213653; 0.0301469403892 0.0298125035777 0.0212639813904;
    0.0109679916017 0.0336301978021 0.0100310158299; 9.42792702472 -12.8558540494
logistic: 0.572681096931 -0.352377483013 -0.0843776025857; 0.381092309387 0.374311903551 0.266115147064;
    0.389295425033 0.16277637836 0.065151385676; -39.9158240752 85.8316481503
""")
# coefficients; standard errors; log partial likelihood
COX = rows("""
breslow: 0.0266208777801 0.123042065718; 0.226126362683 0.248490323866; -96.7899449662
efron: 0.0291314736304 0.13838042375; 0.224601328028 0.250882236072; -91.3989772614
""")
EXPOSURE = 1 + K % 7
# the same as in REFERENCE, of which the second fit has an exposure
NEGATIVE_BINOMIAL = rows("""
plain: 0.90596458661 -0.0314122765713 0.598790294856; 0.198093684803 0.183989437682 0.140251965806;
    0.100411009591 0.0717245646155 0.0587442940777; -103.496019977 212.992039955
exposed: 0.942287335154 0.000717281988228 -0.605327755086; 0.19817742143 0.184082440563 0.140055382403;
    0.181663111742 0.182337050358 0.0714938509613; -115.591670631 237.183341262
""")


def fit_of(problem, samples, labels, weights="samples"):
    data = mpifed.arrays(samples, labels, SIZES)
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": weights}, "data": data}
    return mpifed.run(study, problem=problem).fit()


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def same(fit, reference, atol=0.0):
    x, error, by_client, whole = reference
    np.testing.assert_allclose(fit.x, x, rtol=1e-8, atol=atol)
    close(fit.error, error)
    close(fit.robust, np.array(by_client) * np.sqrt(3 / 2))  # statsmodels leaves out m/(m − 1)
    close([fit.likelihood, fit.aic], whole)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_fit_is_that_of_statsmodels_on_all_samples(name):
    problem, labels = PROBLEMS[name]
    fit = fit_of(problem, A, labels)
    same(fit, REFERENCE[name])
    close(fit.p, 2 * (stats.t(57) if name == "least-squares" else stats.norm).sf(np.abs(fit.x / fit.error)))
    assert (fit.dispersion == 1) == (name in ("poisson", "logistic"))
    assert fit.law == ("t" if name == "least-squares" else "z")


@pytest.mark.parametrize(("name", "how"), [*zip(REFERENCE, ["pooled", "federated"] * 2, strict=True)])
def test_a_fit_of_standardised_features_is_in_the_units_of_the_table(name, how, tmp_path):
    problem, labels = PROBLEMS[name]
    np.savez(tmp_path / "a.npz", X=A[:, :2], y=labels, sizes=np.array(SIZES))
    source = {"name": "file", "path": str(tmp_path / "a.npz"), "standardise": how, "ones": True}
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}, "data": source}
    result = mpifed.run(study, problem=problem, path=tmp_path / "out.h5")
    fit = mpifed.load(tmp_path / "out.h5").fit()
    same(fit, REFERENCE[name])
    x, error, *_ = REFERENCE[name]
    width = stats.t(57).ppf(0.975) if name == "least-squares" else stats.norm.ppf(0.975)
    close([fit.low, fit.high], np.array(x) + np.outer([-width, width], error))
    assert abs(result.x[0] - x[0]) > 0.01
    close(result.units["mean"], A[:, :2].mean(axis=0))
    close(result.units["deviation"], A[:, :2].std(axis=0))
    assert fit.notes == ["standard errors by client are too small with 3 clients for 3 coefficients"]


@pytest.mark.parametrize("ties", COX)
def test_a_cox_model_is_that_of_statsmodels_with_a_stratum_for_each_client(ties):
    x, error, (likelihood,) = COX[ties]
    fit = fit_of({"name": "cox", "ties": ties}, A[:, :2], np.where(EVENTS, TIMES, -TIMES))
    close(fit.x, x)
    close(fit.error, error)
    close([fit.likelihood, -60 * fit.f, fit.aic], [likelihood, likelihood, 4 - 2 * likelihood])
    assert "the log-likelihood is partial" in fit.notes[0]


def test_a_loss_without_a_likelihood_has_errors_by_client_alone():
    fit = fit_of({"name": "huber", "delta": 4.0}, A[:, :2], TIMES)
    assert np.isnan([*fit.error, fit.likelihood, fit.aic, fit.dispersion]).all()
    assert np.isfinite(fit.robust).all()
    assert fit.notes[0].startswith("huber has no likelihood")


@pytest.mark.parametrize("exposed", NEGATIVE_BINOMIAL)
def test_the_regression_of_the_page_is_that_of_statsmodels(exposed, tmp_path):
    (code,) = re.findall(r"<!-- file: my_counts\.py -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_counts.py").write_text(code)
    more = {"exposure": EXPOSURE} if exposed == "exposed" else {}
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}}
    problem = {"name": f"{tmp_path / 'my_counts.py'}:NegativeBinomial", "alpha": 0.5}
    fit = mpifed.run(study, problem=problem, data=mpifed.arrays(A, COUNTS, SIZES, **more)).fit()
    same(fit, NEGATIVE_BINOMIAL[exposed], atol=1e-9)
    assert fit.ratio == "rate ratio"
