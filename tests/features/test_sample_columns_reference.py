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
from tests.statistics.test_fitted_reference import CLASSES, COUNTS, POSITIVE, SIZES, TIMES, A, K, close, rows

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
# coefficients; standard errors; those by client; log-likelihood and dispersion
REFERENCE = rows("""
poisson frequency: 0.889735955956 0.0319676626018 -0.789044493606; 0.0929673746967 0.0771797980563 0.0678434277274;
    0.0855109704698 0.160475026696 0.0530614341342; -282.064105126 1
poisson weight: 0.862005203241 0.0194669491967 -0.73302024465; 0.117698812723 0.094756344413 0.0852246680455;
    0.153945478526 0.0928381282833 0.0786294776534; -170.005609911 1
poisson plain: 0.83836090865 0.0255250135944 -0.752328158765; 0.142394275573 0.119884909379 0.104591271418;
    0.0805217717563 0.140038325892 0.0721533975627; -113.198349344 1
gamma frequency: 0.330007536645 -0.348310347876 0.245354223118; 0.0309913614872 0.0307418451123 0.0218844606593;
    0.0093382779397 0.0368730780474 0.0123916979637; -51.2743519912 0.0715829661243
gamma weight: 0.339039175012 -0.20665288858 0.261671682447; 0.0507595878047 0.0500382221658 0.0357769366195;
    0.0243120516532 0.0197920794911 0.0204107144533; -25.4664696015 0.114590571526
gamma plain: 0.33361232926 -0.274879258503 0.250157945497; 0.0503892197376 0.0498302240397 0.035541763673;
    0.0183326600816 0.0334409593867 0.0103625351631; -20.9244012227 0.0755974133078
logistic frequency: 0.528691865014 -0.381624352153 -0.144116883242; 0.239335474799 0.237472579612 0.168611303401;
    0.37605870091 0.0682461563086 0.148344124807; -99.4056650621 1
logistic weight: 0.544586888719 -0.531531780959 -0.0455733177911; 0.312393114932 0.312184999261 0.220834958411;
    0.272066577522 0.207786372111 0.0168259086377; -58.9787933196 1
logistic plain: 0.572303272116 -0.362285775342 -0.0872191831982; 0.379179796979 0.376678354622 0.267623349039;
    0.381308193588 0.170995714422 0.0583507000956; -39.7715463394 1
least-squares frequency: -0.0989341936521 -0.258033282253 6.86658204239; 0.347156852929 0.344361837953 0.245143811886;
    0.218271181541 0.981727908043 0.220569804767; -375.968446626 8.98214090998
least-squares weight: -0.117597932251 -0.134982786144 6.86877668427; 0.566432152142 0.558382348961 0.399239002579;
    0.249011454144 0.944663682259 0.0777351770977; -155.410692644 14.2694917968
""")


@pytest.mark.parametrize(("name", "weights"), [key.split() for key in REFERENCE])
def test_a_fit_is_that_of_statsmodels_on_all_samples(name, weights):
    x, error, by_client, whole = REFERENCE[f"{name} {weights}"]
    problem, labels, more = PROBLEMS[name]
    data = mpifed.arrays(A, labels, SIZES, **more, **WEIGHTS[weights])
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}, "data": data}
    fit = mpifed.run(study, problem=problem).fit()
    close(fit.x, x)
    close(fit.error, error)
    close(fit.robust, np.array(by_client) * np.sqrt(3 / 2))  # statsmodels leaves out m/(m − 1)
    close([fit.likelihood, fit.dispersion], whole)
    assert fit.samples == (FREQUENCY.sum() if weights == "frequency" else 60)
