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
REFERENCE = {  # problem, labels, coefficients, standard errors, those by client, log-likelihood, AIC
    "least-squares": (
        "least-squares",
        TIMES,
        [-0.12056413723402862, -0.2067099948416589, 6.90694118465429],
        [0.5565705614985879, 0.5503962140674635, 0.39257403601714225],
        [0.21033124027043115, 0.953203133255834, 0.14165704751184136],
        -150.24851878726523,
        306.49703757453045,
    ),
    "poisson": (
        {"name": "poisson", "bias": False},
        COUNTS,
        [0.8608153096203404, -0.003814265887020725, 0.6093491483838724],
        [0.1417017984036457, 0.12111655106128232, 0.10441601088878158],
        [0.09723451729000075, 0.06093593444319201, 0.058059248754531306],
        -89.71992128384093,
        185.43984256768186,
    ),
    "gamma": (
        {"name": "gamma", "bias": False},
        POSITIVE,
        [0.3314357668933109, -0.2669062368537415, 0.22879721365326355],
        [0.030146940389180237, 0.029812503577705703, 0.02126398139039682],
        [0.01096799160166178, 0.0336301978021329, 0.01003101582987013],
        9.427927024723658,
        -12.855854049447316,
    ),
    "logistic": (
        {"name": "logistic", "mu": 0.0},
        CLASSES,
        [0.572681096931138, -0.3523774830130685, -0.08437760258572079],
        [0.3810923093874151, 0.37431190355119587, 0.2661151470639587],
        [0.389295425032588, 0.1627763783596298, 0.06515138567600894],
        -39.915824075172125,
        85.83164815034425,
    ),
}
COX = {  # coefficients, standard errors, log partial likelihood
    "breslow": (
        [0.026620877780098706, 0.12304206571820064],
        [0.22612636268303754, 0.24849032386613124],
        -96.78994496618674,
    ),
    "efron": (
        [0.029131473630396268, 0.13838042374957377],
        [0.22460132802824004, 0.25088223607182636],
        -91.39897726135898,
    ),
}


EXPOSURE = 1 + K % 7
NEGATIVE_BINOMIAL = {  # exposure: coefficients, standard errors, those by client, log-likelihood, AIC
    False: (
        [0.9059645866096556, -0.03141227657134227, 0.5987902948557994],
        [0.19809368480288672, 0.18398943768213488, 0.14025196580575852],
        [0.10041100959098564, 0.0717245646154615, 0.05874429407766938],
        -103.496019977368,
        212.992039954736,
    ),
    True: (
        [0.9422873351542916, 0.0007172819882284437, -0.6053277550860068],
        [0.19817742142954914, 0.18408244056339243, 0.1400553824033675],
        [0.18166311174220165, 0.18233705035844644, 0.0714938509613167],
        -115.59167063114896,
        237.18334126229792,
    ),
}


def fit_of(problem, samples, labels, weights="samples"):
    data = mpifed.arrays(samples, labels, SIZES)
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": weights}, "data": data}
    return mpifed.run(study, problem=problem).fit()


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_fit_is_that_of_statsmodels_on_all_samples(name):
    problem, labels, x, error, by_client, likelihood, aic = REFERENCE[name]
    fit = fit_of(problem, A, labels)
    close(fit.x, x)
    close(fit.error, error)
    close(fit.robust, np.array(by_client) * np.sqrt(3 / 2))  # statsmodels leaves out m/(m − 1)
    close([fit.likelihood, fit.aic], [likelihood, aic])
    assert fit.law == ("t" if name == "least-squares" else "z")


@pytest.mark.parametrize("ties", COX)
def test_a_cox_model_is_that_of_statsmodels_with_a_stratum_for_each_client(ties):
    x, error, likelihood = COX[ties]
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


@pytest.mark.parametrize("exposed", [False, True])
def test_the_regression_of_the_page_is_that_of_statsmodels(exposed, tmp_path):
    (code,) = re.findall(r"<!-- file: my_counts\.py -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_counts.py").write_text(code)
    x, error, by_client, likelihood, aic = NEGATIVE_BINOMIAL[exposed]
    more = {"exposure": EXPOSURE} if exposed else {}
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}}
    problem = {"name": f"{tmp_path / 'my_counts.py'}:NegativeBinomial", "alpha": 0.5}
    fit = mpifed.run(study, problem=problem, data=mpifed.arrays(A, COUNTS, SIZES, **more)).fit()
    np.testing.assert_allclose(fit.x, x, rtol=1e-8, atol=1e-9)
    close(fit.error, error)
    close(fit.robust, np.array(by_client) * np.sqrt(3 / 2))
    close([fit.likelihood, fit.aic], [likelihood, aic])
    assert fit.ratio == "rate ratio"
