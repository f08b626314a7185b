"""Fits of samples with weights, offsets and exposures beside the numbers of statsmodels 0.15.0 on the pooled samples.

They were computed by

    import statsmodels.api as sm
    f = sm.families
    families = {"poisson": (f.Poisson(), COUNTS, {"exposure": EXPOSURE}),
                "gamma": (f.Gamma(f.links.Log()), POSITIVE, {"offset": OFFSET}),
                "logistic": (f.Binomial(), CLASSES, {"offset": OFFSET})}
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": "use_correction": False}}
    for family, y, more in families.values():
        for weights in ({"freq_weights": FREQUENCY}, {"var_weights": PRIOR}, {}):
            for how in ({}, clusters):
                fit = sm.GLM(y, A, family, **more, **weights).fit(tol=1e-14, maxiter=99, **how)
                print(fit.params, fit.bse, fit.llf, fit.scale)
    for how in ({}, clusters):
        fit = sm.WLS(TIMES, A, PRIOR).fit(**how)

but that with frequencies standard errors by client, and all numbers of least squares (sm.OLS), are those of a table in
which each row stands as often as its frequency says.
"""

import numpy as np
import pytest

import mpifed
from tests.experiment.test_fitted_reference import CLASSES, COUNTS, POSITIVE, SIZES, TIMES, A, K, close

FREQUENCY = 1 + K % 4
PRIOR = 0.5 + K % 5 / 2
EXPOSURE = 1 + K % 7
OFFSET = np.round(0.3 * np.sin(3 * K), 3)
WEIGHTS = {"frequency": {"frequency": FREQUENCY}, "weight": {"weight": PRIOR}, "plain": {}}
PROBLEMS = {
    "poisson": ({"name": "poisson", "bias": False}, COUNTS, {"exposure": EXPOSURE}),
    "gamma": ({"name": "gamma", "bias": False}, POSITIVE, {"offset": OFFSET}),
    "logistic": ({"name": "logistic", "mu": 0.0}, CLASSES, {"offset": OFFSET}),
    "least-squares": ("least-squares", TIMES, {}),
}
REFERENCE = {  # coefficients, standard errors, those by client, log-likelihood, dispersion
    ("poisson", "frequency"): (
        [0.8897359559564286, 0.0319676626017987, -0.7890444936059846],
        [0.09296737469671372, 0.0771797980562557, 0.06784342772738602],
        [0.08551097046976239, 0.1604750266964873, 0.053061434134155594],
        -282.06410512630833,
        1.0,
    ),
    ("poisson", "weight"): (
        [0.8620052032408646, 0.01946694919673079, -0.733020244649917],
        [0.11769881272341029, 0.09475634441300507, 0.08522466804548967],
        [0.15394547852627508, 0.09283812828328056, 0.07862947765339742],
        -170.00560991105706,
        1.0,
    ),
    ("poisson", "plain"): (
        [0.8383609086498454, 0.025525013594391993, -0.752328158764807],
        [0.14239427557313658, 0.11988490937916253, 0.10459127141762925],
        [0.08052177175628066, 0.14003832589218293, 0.07215339756267777],
        -113.1983493440366,
        1.0,
    ),
    ("gamma", "frequency"): (
        [0.33000753664531773, -0.3483103478761358, 0.24535422311827002],
        [0.03099136148723216, 0.030741845112274097, 0.021884460659258042],
        [0.009338277939698294, 0.036873078047385585, 0.012391697963664907],
        -51.274351991194564,
        0.07158296612426475,
    ),
    ("gamma", "weight"): (
        [0.3390391750116152, -0.20665288858017178, 0.2616716824466743],
        [0.0507595878047081, 0.050038222165752134, 0.035776936619542586],
        [0.02431205165319339, 0.01979207949107169, 0.020410714453330016],
        -25.4664696014959,
        0.11459057152624752,
    ),
    ("gamma", "plain"): (
        [0.3336123292597153, -0.27487925850333, 0.2501579454972281],
        [0.05038921973758307, 0.04983022403970539, 0.035541763673010617],
        [0.018332660081599637, 0.03344095938665128, 0.010362535163116532],
        -20.92440122271206,
        0.07559741330782538,
    ),
    ("logistic", "frequency"): (
        [0.5286918650137938, -0.38162435215303653, -0.14411688324186178],
        [0.23933547479854952, 0.23747257961209936, 0.16861130340118025],
        [0.3760587009103551, 0.06824615630857919, 0.1483441248070497],
        -99.40566506207735,
        1.0,
    ),
    ("logistic", "weight"): (
        [0.5445868887188634, -0.5315317809591247, -0.045573317791064674],
        [0.3123931149319698, 0.31218499926055887, 0.22083495841104556],
        [0.27206657752201036, 0.20778637211133047, 0.01682590863774362],
        -58.97879331960899,
        1.0,
    ),
    ("logistic", "plain"): (
        [0.5723032721164927, -0.3622857753422975, -0.08721918319820443],
        [0.37917979697874726, 0.37667835462161425, 0.26762334903910434],
        [0.3813081935879555, 0.17099571442249745, 0.05835070009557111],
        -39.77154633944279,
        1.0,
    ),
    ("least-squares", "frequency"): (
        [-0.09893419365214301, -0.25803328225289307, 6.866582042386607],
        [0.3471568529292133, 0.3443618379531716, 0.24514381188613343],
        [0.2182711815407572, 0.9817279080433461, 0.22056980476677626],
        -375.9684466255869,
        8.982140909976861,
    ),
    ("least-squares", "weight"): (
        [-0.11759793225056484, -0.13498278614408052, 6.868776684272527],
        [0.5664321521418406, 0.5583823489612659, 0.39923900257854483],
        [0.24901145414448214, 0.9446636822589239, 0.07773517709766753],
        -155.4106926443478,
        14.269491796758533,
    ),
}


@pytest.mark.parametrize(("name", "weights"), REFERENCE)
def test_a_fit_is_that_of_statsmodels_on_all_samples(name, weights):
    x, error, by_client, likelihood, dispersion = REFERENCE[name, weights]
    problem, labels, more = PROBLEMS[name]
    data = mpifed.arrays(A, labels, SIZES, **more, **WEIGHTS[weights])
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}, "data": data}
    fit = mpifed.run(study, problem=problem).fit()
    close(fit.x, x)
    close(fit.error, error)
    close(fit.robust, np.array(by_client) * np.sqrt(3 / 2))  # statsmodels leaves out m/(m − 1)
    close([fit.likelihood, fit.dispersion], [likelihood, dispersion])
    assert fit.samples == (FREQUENCY.sum() if weights == "frequency" else 60)
