"""FedEPM: the penalty is exact from λ* on, Lemma VI.1 holds on repeated iterates, and the ε of an upload."""

from functools import cache

import numpy as np
import pytest

import mpifed
from benchmarks.fedepm import theory
from benchmarks.fedepm.theory import epsilon_of_upload, gradients
from mpifed.algorithms.parts.elastic_nets import elastic_net_mean

OTHERS = [{"c": 1e-8}, {"mu0": 0.1}, {"step_scale": "samples"}, {"alpha": 1.1}]
QUADRATIC = {"data": {"name": "quadratic", "clients": 6, "features": 4}, "problem": "quadratic"}
OPTIONS = {"noise": "none", "step_scale": "one", "mu0": 1.0, "eta": 1e-3, "k0": 3, "c": 100.0}
NOISY = {"rounds": 15, "data": {"name": "gaussian", "clients": 50, "samples": 4, "features": 3}, "selection": "all"}
M50 = (0.02 * 50 + 1) * 0.6e-5  # η of ρ = 0.5


@cache
def fedepm(ratio, **algorithm):
    options = {"name": "benchmarks.fedepm.variants:Threshold", "ratio": ratio, **OPTIONS, **algorithm}
    half = {"selection": {"name": "uniform", "share": 0.5}, "stop": {"diverged": 0}}
    return mpifed.run(QUADRATIC | half | {"rounds": 10, "algorithm": options})


def epsilon(**algorithm):
    options = {"name": "fedepm", "epsilon": 0.1} | algorithm
    return epsilon_of_upload(mpifed.run(NOISY | {"algorithm": options, "stop": {"diverged": 0.0}}))


def test_the_penalty_is_exact_from_the_threshold_on_and_a_large_one_moves_nothing():
    below, at = fedepm(0.3), fedepm(1.0)
    assert theory.ratio(below) == pytest.approx(0.3)
    assert theory.threshold(below) == theory.threshold(at)
    assert theory.penalised_error(at) < 1e-6 < 1e-2 < theory.penalised_error(below)
    assert theory.residual(at) == 0
    assert theory.residual(below) == pytest.approx(0.7)
    f = theory.setting(theory.Key(at)).known.f
    assert theory.penalised(theory.Key(fedepm(1.5)))[0] == pytest.approx(6 * f)
    assert theory.penalised(theory.Key(below))[0] < 6 * f
    s = theory.setting(theory.Key(fedepm(0.001)))
    W = np.random.default_rng(0).standard_normal((6, 4))
    assert np.allclose(theory.elastic_net(s, W), elastic_net_mean(W, s.lam, s.eta), atol=1e-12)
    assert (theory.unmoved(fedepm(10.0)), theory.last_step(fedepm(10.0))) == (1, 0)  # with a large one no model moves


@pytest.mark.parametrize("algorithm", [{}, *(pytest.param(one, marks=pytest.mark.slow) for one in OTHERS)], ids=str)
def test_f_grows_by_no_more_than_the_lemma_allows(algorithm):
    result = fedepm(0.1, **algorithm)
    found = theory.trace(theory.Key(result))
    assert len(found.F) == 31
    assert found.moved.any()
    assert theory.excess(result) <= 1e-12
    assert theory.above_penalised(result) >= 0


SFEDAVG = {"name": "sfedavg", "k0": 3, "step": {"name": "sqrt-samples", "a": 0.01}}  # k0 steps from the model


@pytest.mark.parametrize(
    ("algorithm", "times"),
    [
        ({"k0": 1, "step_scale": "one", "eta": M50}, 15),
        ({"k0": 12, "step_scale": "one", "eta": M50}, 193),
        ({"k0": 12, "noise": "matched", "eta": 1e-9}, (1.001**180 - 1) / 0.001),
        ({"k0": 12, "noise": "released", "eta": 1e-9}, 4 * (1.001**180 - 1) / 0.001),  # steps over 4 samples
        (SFEDAVG | {"noise": "matched"}, 3),
        (SFEDAVG | {"noise": "released"}, 3 * 0.05 * 1.001**3 * 0.01 * 4 / 6**0.5),
        ({"noise": "clipped"}, 1),  # the ε that it names
        ({"noise": "none"}, np.nan),
    ],
    ids=str,
)
def test_the_epsilon_of_the_fifteenth_upload(algorithm, times):
    if algorithm.get("noise") == "clipped":
        pytest.importorskip("dp_accounting")
    rel = 0.01 if "step_scale" in algorithm else 1e-3
    assert epsilon(**algorithm) == pytest.approx(0.1 * times, rel=rel, nan_ok=True)


@pytest.mark.parametrize(("name", "each"), [("sfedavg", 1), ("sfedprox", 3), ("fedepm", 0)])
def test_gradients_of_a_round_are_counted_from_the_settings_alone(name, each):
    study = NOISY | {"rounds": 1, "problem": "logistic", "data": NOISY["data"] | {"clients": 5}}
    found = [gradients(mpifed.run(study | {"algorithm": {"name": name, "k0": k0, "epsilon": 0.1}})) for k0 in (2, 5)]
    assert found == [2 * each + 1, 5 * each + 1]
