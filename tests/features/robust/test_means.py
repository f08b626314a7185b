"""Robust means against their published formulas, written as loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import trim_mean

import mpifed
from mpifed.features.robust.means import CentredClipping, GeometricMedian, Krum, Median, RobustMean, TrimmedMean

NUMBERS = st.floats(-100, 100, width=32)
SHAPES = st.tuples(st.integers(1, 17), st.integers(1, 5))
ROWS = SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=NUMBERS))
EVERY = [RobustMean.member(name, "robust")() for name in RobustMean.choices]


def rows_of(k, n=6, seed=0):
    return np.random.default_rng(seed).standard_normal((k, n))


@given(ROWS)
def test_the_median_is_that_of_numpy(rows):
    np.testing.assert_array_equal(Median().mean(rows, len(rows), 0.0), np.median(rows, axis=0))


@given(ROWS, st.floats(0, 0.49))
def test_the_trimmed_mean_is_that_of_scipy(rows, share):
    found = TrimmedMean(share=share).mean(rows, len(rows), 0.0)
    # scipy cuts the whole part of share · k too, but not of 0.29 · 100, which is a little below 29
    exact = int(share * len(rows) + 1e-9) / len(rows) + 1e-12
    np.testing.assert_allclose(found, trim_mean(rows, exact, axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("robust", EVERY, ids=lambda robust: robust.label())
@settings(max_examples=25)
@given(st.integers(5, 12), st.integers(0, 10**6))
def test_the_order_of_uploads_changes_rounding_alone(robust, k, seed):
    rows = rows_of(k, seed=seed)
    other = rows[np.random.default_rng(seed).permutation(k)]
    before = np.full(6, 0.1)
    np.testing.assert_allclose(robust.mean(rows, k, before), robust.mean(other, k, before), rtol=1e-9, atol=1e-12)


@given(st.integers(5, 15), st.sampled_from([0.0, 0.1, 0.2, 0.3]), st.integers(0, 10**6))
def test_krum_takes_the_row_that_its_definition_names(k, share, seed):
    rows = rows_of(k, seed=seed)
    f = int(share * k + 1e-9)
    krum = Krum(share=share)
    assert bool(krum.lacks(k)) == (k <= 2 * f + 2)
    if krum.lacks(k):
        return
    scores = []
    for i in range(k):
        squares = sorted(sum((rows[i] - rows[j]) ** 2) for j in range(k) if j != i)
        scores.append(sum(squares[: k - f - 2]))
    np.testing.assert_array_equal(krum.mean(rows, k, 0.0), rows[scores.index(min(scores))])


@given(st.integers(2, 12), st.integers(0, 10**6))
def test_each_step_of_weiszfeld_brings_the_sum_of_distances_down_to_that_of_the_geometric_median(k, seed):
    rows = rows_of(k, seed=seed)
    points = [np.median(rows, axis=0)]
    pull = np.inf
    while np.linalg.norm(pull) > 1e-5 * k and len(points) <= 100:
        beta = [1 / max(np.linalg.norm(points[-1] - row), 1e-6) for row in rows]
        pull = sum(b * (row - points[-1]) for b, row in zip(beta, rows, strict=True))
        points.append(sum(b * row for b, row in zip(beta, rows, strict=True)) / sum(beta))
    sums = [sum(np.linalg.norm(point - row) for row in rows) for point in points]
    assert (np.diff(sums) <= 1e-5).all()
    for steps in (1, 8, 100):
        found = GeometricMedian(steps=steps).mean(rows, k, 0.0)
        np.testing.assert_allclose(found, points[min(steps, len(points) - 1)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("robust", [GeometricMedian(), Median(), Krum(share=0.4)], ids=lambda robust: robust.label())
def test_fewer_than_half_of_the_uploads_move_no_mean_far_however_long_they_are(robust, dtype):
    k, f = 21, 8
    for scale in (1e1, 1e3, 1e9):
        rows = rows_of(k) + 5.0
        honest = rows[f:].mean(axis=0)
        rows[:f] *= -scale
        found = robust.mean(rows.astype(dtype), k, 0.0)
        assert np.linalg.norm(found - honest) < 4, "honest rows are about 2.4 from their mean"


@pytest.mark.parametrize("robust", [GeometricMedian(), Krum()], ids=lambda robust: robust.label())
def test_rows_that_are_close_to_one_another_keep_the_digits_of_their_distances(robust):
    k, f, n = 10, 2, 1000
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = (rng.standard_normal(n) + 1e-4 * rng.standard_normal((k, n))).astype(np.float32)
        rows[:f] += (1e-4 * rng.standard_normal((f, n))).astype(np.float32)  # attackers, a little farther off
        exact = robust.mean(rows.astype(np.float64), k, 0.0)
        found = robust.mean(rows, k, 0.0)
        assert np.linalg.norm(found - exact) < 3e-6 * np.sqrt(n), "a distance of 1e-4 √n has two digits at least"
        if isinstance(robust, Krum):
            assert not (rows[:f] == found).all(axis=1).any(), "an attacker is never the nearest to others"


def test_a_geometric_median_bears_four_attackers_of_ten_that_are_a_thousand_times_as_long():
    study = {"data": {"name": "gaussian", "clients": 20, "samples": 30, "features": 5}, "problem": "logistic"}
    study |= {"algorithm": "gd", "selection": "all", "rounds": 30}
    attack = {"name": "sign-flip", "clients": 0.4, "scale": 1000.0}
    result = mpifed.run(study, attack=attack, robust="geometric-median", progress=False)
    assert result.rounds["objective"][-1] == pytest.approx(0.531, abs=1e-3)


@given(st.integers(1, 12), st.floats(0.1, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_clipping_is_about_the_last_mean_and_without_a_bound_the_plain_mean(k, radius, steps, seed):
    rows = rows_of(k, seed=seed)
    v = before = np.full(6, 0.3)
    for _ in range(steps):
        v = v + sum((row - v) * radius / max(radius, np.linalg.norm(row - v)) for row in rows) / k
    found = CentredClipping(radius=radius, steps=steps).mean(rows, k, before)
    np.testing.assert_allclose(found, v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(CentredClipping(radius=1e9).mean(rows, k, before), rows.mean(axis=0), atol=1e-12)


@given(st.integers(1, 20), st.integers(1, 6))
def test_buckets_hold_each_upload_once_and_are_as_equal_as_possible(k, s):
    buckets = Median(bucket=s).average_buckets(np.eye(k), 0, (1, 2))
    assert len(buckets) == -(-k // s)
    np.testing.assert_array_equal((buckets > 0).sum(axis=0), 1)
    sizes = (buckets > 0).sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_allclose(buckets.sum(axis=1), 1)


def test_buckets_are_dealt_anew_in_each_round():
    one, other = (Median(bucket=2).average_buckets(np.eye(10), 0, (round, 2)) for round in (1, 2))
    assert (one != other).any()
