"""Logistic regression: its loss at any score, its labels and its regularisers."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.problems.logistic import Logistic
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from tests.helpers.problem_cases import one_block


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("z", [1e4, -1e4, 30.0, 0.0])
@pytest.mark.parametrize("problem", [Logistic(mu=0.0), NonconvexLogistic(mu=0.0)], ids=lambda p: p.label())
def test_logistic_losses_are_right_and_silent_at_any_score(problem, z, dtype):
    data = Pool(np.ones((2, 1)), np.array([0.0, 1.0]), None, np.array([1, 1]), dtype)
    with np.errstate(all="raise", under="ignore"):
        value, grad = problem.value_grad(one_block(problem, data), np.array([z], dtype))
    exact = np.logaddexp(0, z)  # ln(1 + e^z)
    assert np.allclose(value, [exact, exact - z], rtol=1e-6, atol=1e-7)
    assert np.allclose(grad[:, 0], [np.exp(z - exact), np.exp(z - exact) - 1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("problem", [Logistic(), NonconvexLogistic()], ids=lambda p: p.label())
def test_labels_of_minus_one_and_one_become_zero_and_one(problem):
    assert list(problem.checked_labels(np.array([-1.0, 1.0, 1.0, -1.0]))) == [0, 1, 1, 0]
    assert list(problem.checked_labels(np.array([0.0, 1.0, 1.0, 0.0]))) == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0.0, 2.0], "labels must be 0 and 1 or -1 and 1, but there is 2"),
        ([0.5], "but there is 0.5"),
        ([-1.0, 0.0, 1.0], "but there are -1, 0 and 1"),
    ],
)
@pytest.mark.parametrize("problem", [Logistic(), NonconvexLogistic()], ids=lambda p: p.label())
def test_other_labels_are_refused_by_a_sentence(problem, labels, sentence):
    with pytest.raises(UserError, match=rf"^problem '{problem.label()}' cannot use these data: .*{sentence}"):
        problem.checked_labels(np.array(labels))
