"""The multi-class SVM at its kinks."""

from __future__ import annotations

import numpy as np

from mpifed.data.pool import Pool
from mpifed.problems.svm import SVM
from tests.helpers.problem_cases import one_block


def test_the_slope_of_the_svm_is_one_sided_at_a_kink():
    """At z = (1, 0), b = 0 the margin is exactly 0: the slope is that of the flat side, ∂ℓ/∂z = 0."""
    problem = SVM(bias=False)
    block = one_block(problem, Pool(np.ones((1, 1)), np.array([0.0]), None, np.array([1])))
    value, grad = problem.value_grad(block, np.array([1.0, 0.0]))
    assert value == [0.0]
    assert not grad.any()
    inside = np.array([1.0 - 1e-6, 0.0])
    assert np.allclose(problem.grad(block, inside), [[-0.5, 0.5]])
    assert np.allclose(problem.value(block, inside), 5e-7)
