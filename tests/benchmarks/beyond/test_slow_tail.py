"""Speeds with a slow tail: equal at sigma = 0, else times of Pareto's law around the same median."""

import numpy as np
import pytest

from benchmarks.beyond.variants import SlowTail


def speeds(sigma, m=100_000):
    return SlowTail(median=200.0, sigma=sigma).draw(np.random.default_rng(1), m)


def test_speeds_are_equal_without_a_tail():
    assert (speeds(0.0, 5) == 200.0).all()


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_sigma_is_the_standard_deviation_of_the_logarithm(sigma):
    v = speeds(sigma)
    assert np.median(v) == pytest.approx(200.0, rel=0.05)
    assert np.log(v).std() == pytest.approx(sigma, rel=0.02)
    times = 1 / v
    beyond = [(times > k * times.min()).mean() for k in (4.0, 16.0)]
    assert beyond == pytest.approx([4 ** (-1 / sigma), 16 ** (-1 / sigma)], rel=0.1)
