"""The quadratic of the lower bound."""

import numpy as np
import pytest

from tests.helpers.made_data import build


def matrices(m, n, alpha, beta=1.0):
    dataset = build({"name": "lower-bound", "clients": m, "features": n, "alpha": alpha, "beta": beta})
    X, y = dataset.rows(0, m)
    return X.reshape(m, n, n), y.reshape(m, n)


@pytest.mark.parametrize(("m", "n"), [(2, 6), (3, 7), (4, 2), (5, 11)])
def test_the_blocks_of_42_are_those_printed(m, n):
    alpha, beta = 0.05, 1.0
    Q, b = matrices(m, n, alpha)
    c = (beta - m * alpha) / 4
    far = np.zeros((m, n + m + 2, n + m + 2))  # the matrices of the paper, indices from 1, before they are cut
    for k in range(1, m + 1):
        for j in range(k, n + 2, m):
            far[k - 1, j : j + 2, j : j + 2] = [[1, -1], [-1, 1]]
    far[0, 1:3, 1:3] = [[2, -1], [-1, 1]]
    assert np.allclose(Q, c * far[:, 1 : n + 1, 1 : n + 1] + alpha * np.eye(n), atol=1e-15)
    chain = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    assert np.allclose(Q.sum(axis=0), c * chain + m * alpha * np.eye(n), atol=1e-14)
    assert np.allclose(b[0], c * np.eye(n)[0])
    assert not b[1:].any()
    eigenvalues = np.linalg.eigvalsh(Q)
    assert alpha - 1e-14 <= eigenvalues.min() <= eigenvalues.max() <= beta


def test_the_minimiser_of_the_lower_bound_falls_by_a_constant_factor():
    Q, b = matrices(4, 120, 1e-3)
    w = np.linalg.solve(Q.sum(axis=0), b.sum(axis=0))
    root = np.sqrt(1 / (4 * 1e-3))
    assert np.allclose(w[:40], ((root - 1) / (root + 1)) ** np.arange(1, 41), rtol=1e-4)
