"""The penalty is exact from λ* on, the repeated iterates are those of the run, and Lemma VI.1 holds on them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mpifed
from benchmarks.fedepm import iterates, theory
from mpifed.algorithms.prox import elastic_net_mean


def fedepm(ratio, **algorithm):
    options = {"noise": "none", "step_scale": "one", "mu0": 1.0, "eta": 1e-3, "k0": 3, "c": 100.0}
    return mpifed.run(
        {
            "rounds": 10,
            "data": {"name": "quadratic", "clients": 6, "features": 4},
            "problem": "quadratic",
            "algorithm": {"name": "benchmarks.fedepm.variants:Threshold", "ratio": ratio, **options, **algorithm},
            "selection": {"name": "uniform", "share": 0.5},
            "stop": {"diverged": 0},
        }
    )


def test_the_penalty_is_exact_from_the_threshold_on():
    below, at = fedepm(0.3), fedepm(1.0)
    assert theory.ratio(below) == pytest.approx(0.3)
    assert theory.threshold(below) == theory.threshold(at)
    assert theory.penalised_error(at) < 1e-6 < 1e-2 < theory.penalised_error(below)
    assert theory.residual(at) == 0
    assert theory.residual(below) == pytest.approx(0.7)


def test_the_minimum_of_the_penalised_problem_is_f_star_where_the_penalty_is_exact():
    at = fedepm(1.5)
    s = theory.setting(theory.Key(at))
    assert theory.penalised(theory.Key(at))[0] == pytest.approx(6 * s.known.f)
    below = theory.penalised(theory.Key(fedepm(0.3)))[0]
    assert below < 6 * s.known.f


def test_with_a_large_penalty_no_model_moves():
    result = fedepm(10.0)
    assert theory.unmoved(result) == 1
    assert theory.last_step(result) == 0


@pytest.mark.parametrize("algorithm", [{}, {"c": 1e-8}, {"mu0": 0.1}, {"step_scale": "samples"}, {"alpha": 1.1}])
def test_f_grows_by_no_more_than_the_lemma_allows(algorithm):
    result = fedepm(0.1, **algorithm)
    found = theory.trace(theory.Key(result))
    assert len(found.F) == 31
    assert found.moved.any()
    assert theory.excess(result) <= 1e-12
    assert theory.above_penalised(result) >= 0


def test_the_elastic_net_mean_is_that_of_the_package():
    s = theory.setting(theory.Key(fedepm(0.001)))
    W = np.random.default_rng(0).standard_normal((6, 4))
    assert np.allclose(iterates.elastic_net(s, W), elastic_net_mean(W, s.lam, s.eta), atol=1e-12)


def test_another_run_is_refused():
    result = fedepm(0.1)
    rounds = result.rounds | {"objective": result.rounds["objective"] + 1e-3}
    with pytest.raises(ValueError, match="round 1 differs from the run"):
        theory.trace(theory.Key(dataclasses.replace(result, rounds=rounds)))
