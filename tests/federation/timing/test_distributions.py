"""Distributions of speeds and delays: medians, means and tails."""

import numpy as np
import pytest

from mpifed.federation.timing.distributions import Distribution

M = 20000


@pytest.mark.parametrize(
    ("table", "median", "mean"),
    [
        (3.5, 3.5, 3.5),
        ({"name": "constant", "value": 2}, 2, 2),
        ({"name": "uniform", "low": 1, "high": 5}, 3, 3),
        ({"name": "lognormal", "median": 100, "sigma": 0.5}, 100, 100 * np.exp(0.125)),
        ({"name": "exponential", "mean": 4}, 4 * np.log(2), 4),
        ({"name": "pareto", "scale": 2, "shape": 4}, 2 * 2**0.25, 2 * 4 / 3),
    ],
)
def test_a_distribution_has_the_median_and_the_mean_it_says_and_its_spread_or_tail(table, median, mean):
    values = Distribution.build(table, "speed").draw(np.random.default_rng(1), M)
    assert values.shape == (M,)
    assert np.median(values) == pytest.approx(median, rel=0.03)
    assert values.mean() == pytest.approx(mean, rel=0.03)
    if "sigma" in str(table):
        assert np.log(values).std() == pytest.approx(0.5, rel=0.03)
    if "scale" in str(table):
        assert values.min() >= 2
        assert (values > 4).mean() == pytest.approx(2.0**-4, abs=0.01)
