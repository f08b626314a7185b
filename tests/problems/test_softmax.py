"""Softmax regression: its curvature and its loss."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.data.pool import Pool
from mpifed.problems.mlp import MLP
from mpifed.problems.softmax import Softmax
from tests.helpers.problem_cases import dataset, one_block


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_r_of_softmax_is_what_its_table_says(bias, lam, size, kind):
    data, problem = dataset("softmax", size, kind), Softmax(lam=lam, bias=bias)
    block = one_block(problem, data)
    A = [np.column_stack([block.dense(i), np.ones(d)]) if bias else block.dense(i) for i, d in enumerate(data.sizes)]
    assert np.allclose(
        problem.lipschitz(block), [np.linalg.norm(a, 2) ** 2 / (2 * len(a)) + lam for a in A], rtol=1e-10
    )


def test_r_of_softmax_cannot_be_made_smaller():
    """Two classes and one sample, both classes equally likely: the curvature is ‖a‖²/2 along (a, −a)."""
    a, problem = np.array([[3.0, 4.0]]), Softmax(bias=False)
    block = one_block(problem, Pool(np.tile(a, (2, 1)), np.array([0.0, 1.0]), None, np.array([2])))
    V = np.concatenate([a, -a], axis=1) / 50**0.5
    assert np.isclose(np.vecdot(V, problem.hessian(block, np.zeros((1, 4)))(V))[0], problem.lipschitz(block)[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", [Softmax(), MLP(hidden=(2,))], ids=lambda p: p.label())
def test_cross_entropy_is_right_and_silent_at_any_score(problem, dtype):
    data = Pool(np.array([[1e4], [-1e4]]), np.array([0.0, 1.0]), None, np.array([1, 1]), dtype)
    block, n = one_block(problem, data), problem.dim(data)
    x = np.concatenate([[1.0, -1.0], np.zeros(n - 2)]).astype(dtype)  # softmax: z = ±(1e4, −1e4), always right
    with np.errstate(all="raise", under="ignore"):
        value, grad = problem.value_grad(block, x)
        wrong, slope = problem.value_grad(block, -x)
    assert np.isfinite(value).all()
    assert np.isfinite(grad).all()
    if isinstance(problem, Softmax):
        assert (value == 0).all()
        assert not grad.any()
        assert np.allclose(wrong, 2e4, rtol=1e-6)
        assert np.allclose(np.abs(slope[:, :2]), 1e4, rtol=1e-6)
