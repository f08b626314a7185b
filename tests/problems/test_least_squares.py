"""Least squares against the formula."""

from __future__ import annotations

import numpy as np

from mpifed.problems.least_squares import LeastSquares
from tests.helpers.problem_cases import dataset, one_block


def test_least_squares_is_written_out_right():
    data = dataset("least-squares", 2)
    block, x = one_block(LeastSquares(), data), np.arange(6.0)
    wanted = [np.sum((block.dense(i) @ x - block.b[i, :d]) ** 2) / (2 * d) for i, d in enumerate(data.sizes)]
    assert np.allclose(LeastSquares().value(block, x), wanted)
