"""Random quadratic functions have the eigenvalues asked for."""

import numpy as np

from tests.helpers.made_data import build


def test_quadratics_have_the_eigenvalues_asked_for():
    dataset = build({"name": "quadratic", "clients": 3, "features": 8, "mu": 0.5, "L": 4.0})
    rows, b = dataset.rows(0, 3)
    for Q in rows.reshape(3, 8, 8):
        assert np.array_equal(Q, Q.T)
        assert np.allclose(np.linalg.eigvalsh(Q)[[0, -1]], [0.5, 4.0])
    assert (list(dataset.sizes), b.shape) == ([8, 8, 8], (24,))
