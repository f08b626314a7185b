"""Distributions of speeds and delays: medians, means and tails."""

import numpy as np
import pytest

from mpifed.federation.timing.distributions import Distribution

M = 20000


def drawn(table):
    return Distribution.build(table, "speed").draw(np.random.default_rng(1), M)


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
def test_a_distribution_has_the_median_and_the_mean_it_says(table, median, mean):
    values = drawn(table)
    assert values.shape == (M,)
    assert np.median(values) == pytest.approx(median, rel=0.03)
    assert values.mean() == pytest.approx(mean, rel=0.03)


def test_the_spread_of_a_lognormal_is_that_of_its_logarithm():
    assert np.log(drawn({"name": "lognormal", "median": 7, "sigma": 1.3})).std() == pytest.approx(1.3, rel=0.03)


def test_pareto_begins_at_its_scale_and_has_its_tail():
    values = drawn({"name": "pareto", "scale": 2, "shape": 1.5})
    assert values.min() >= 2
    assert (values > 8).mean() == pytest.approx(4**-1.5, abs=0.01)
