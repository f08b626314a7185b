"""FedGiA: the repeated iterates are those of the run, and its theorems hold on them."""

import dataclasses
from functools import cache

import numpy as np
import pytest

import mpifed
from benchmarks.fedadmm import theory as of_fedadmm
from benchmarks.fedepm import theory as of_fedepm
from benchmarks.fedgia import pool, theory
from benchmarks.repeating import Key
from tests.benchmarks.test_fedadmm import LINEAR, fedadmm
from tests.benchmarks.test_fedepm import fedepm


@cache
def fedgia(**algorithm):
    half = {"rounds": 12, "selection": {"name": "uniform", "share": 0.5}}
    return mpifed.run(LINEAR | half | {"algorithm": {"name": "fedgia", "t": 6.0, "k0": 3, **algorithm}})


@pytest.mark.parametrize("H", ["diagonal", "gram", "zero"])
def test_gradients_are_those_of_the_run(H):
    result = fedgia(H=H)
    found = theory.trace(result)
    assert np.allclose(found.gradient, result.rounds["grad_norm_sq"][:-1], rtol=1e-8)
    assert len(found.moved) == len(found.lagrangian) - 1 == 12 * 3


def test_theorem_3_holds_and_its_lemma_but_for_the_start_from_zero():
    zero, gradient = fedgia(), fedgia(start="-gradient")
    assert 0 < theory.ratio(zero) <= 1
    assert theory.floor(zero) <= 1e-12
    assert theory.descent(zero, True) > 1e-4
    assert theory.descent(gradient, True) <= 1e-12
    assert max(theory.descent(result, False) for result in (zero, gradient)) <= 1e-12
    assert theory.start_gap(gradient) == pytest.approx(theory.start_gap(zero), rel=1e-12)  # both are f(x⁰)


@pytest.mark.parametrize(
    ("trace", "run"),
    [
        (theory.trace, fedgia),
        (of_fedadmm.trace, lambda: fedadmm(rounds=3)),
        (lambda result: of_fedepm.trace(Key(result)), lambda: fedepm(0.1)),
    ],
    ids=["fedgia", "fedadmm", "fedepm"],
)
def test_iterates_that_are_not_those_of_the_run_are_refused(trace, run):
    result = run()
    rounds = result.rounds | {"objective": result.rounds["objective"] + 1e-3}
    with pytest.raises(ValueError, match="round 1 differs from the run"):
        trace(dataclasses.replace(result, rounds=rounds))


def test_the_minimum_of_example_v1_is_where_least_squares_ends_and_divisions_keep_all_samples():
    A, b, sizes = pool.samples(0, 60)
    w = np.repeat(1 / (sizes * len(sizes)), sizes) ** 0.5
    x, *_ = np.linalg.lstsq(A * w[:, None], b * w, rcond=None)
    assert pool.least_squares(A, b, sizes) == pytest.approx(np.sum((w * (A @ x - b)) ** 2) / 2)
    rng = np.random.default_rng(0)
    for total in (6 * 50, 400, 6 * 100):
        made = pool.division(total, 6, 100, rng)
        assert made.sum() == total
        assert 50 <= made.min() <= made.max() <= 100
