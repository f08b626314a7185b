"""The regularisers of logistic regression, against the formula."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.problems.logistic import Logistic
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from tests.helpers.problem_cases import dataset, one_block


@pytest.mark.parametrize(
    ("problem", "extra"),
    [
        (Logistic(mu=0.6), lambda x, d: 0.3 * x @ x / d),
        (Logistic(mu=0.6, regulariser="whole"), lambda x, d: 0.3 * x @ x),
        (NonconvexLogistic(mu=0.6), lambda x, d: 0.3 * np.sum(x**2 / (1 + x**2)) / d),
    ],
    ids=["inside of 1/d_i", "outside of 1/d_i", "non-convex"],
)
def test_the_regulariser_stands_inside_or_outside_of_the_mean(problem, extra, size, kind):
    data, x = dataset("logistic", size, kind), np.linspace(-2, 2, 6)
    block, bare = (one_block(p, data) for p in (problem, Logistic(mu=0.0)))
    added = problem.value(block, x) - Logistic(mu=0.0).value(bare, x)
    assert np.allclose(added, [extra(x, d) for d in data.sizes])
