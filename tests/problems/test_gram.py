"""Gram matrices, their largest eigenvalues, and conjugate gradients."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.data.pool import Pool
from mpifed.problems import gram as spectral
from mpifed.problems.gram import conjugate_gradients
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import systems
from tests.helpers.problem_cases import dataset, one_block, written_out


@pytest.mark.parametrize("accuracy", [0.1, 1e-6, 1e-12])
def test_conjugate_gradients_solve_to_the_accuracy_of_each_client_and_with_the_same_bits_alone(accuracy):
    H, B = systems(6, 8)
    B[2] = 0
    wanted = accuracy * np.array([1.0, 0.1, 1.0, 1.0, 0.5, 1.0])
    X = conjugate_gradients(lambda V: np.matvec(H, V), B, wanted, 100)
    residual = np.linalg.norm(np.matvec(H, X) - B, axis=1)
    assert (residual <= wanted * np.linalg.norm(B, axis=1) * 1.01 + 1e-14).all()
    assert not X[2].any()
    for i in np.arange(6)[:, None]:
        assert X[i].tobytes() == conjugate_gradients(lambda V, i=i: np.matvec(H[i], V), B[i], wanted[i], 100).tobytes()


def test_conjugate_gradients_keep_the_type_and_the_input():
    H, B = systems(3, 5)
    H, B = H.astype(np.float32), B.astype(np.float32)
    B.setflags(write=False)
    X = conjugate_gradients(lambda V: np.matvec(H, V), B, np.full(3, 1e-3), 100)
    assert X.dtype == np.float32
    assert np.allclose(np.matvec(H, X), B, rtol=1e-2, atol=1e-2)


def r(X, kind):
    """r of one client with these samples."""
    data = Pool(sp.csr_array(X) if kind == "csr" else X, np.ones(len(X)), None, np.array([len(X)]))
    return LeastSquares().lipschitz(one_block(LeastSquares(), data))[0]


def test_r_of_a_client_without_any_feature_is_zero(kind, monkeypatch):
    for large in (spectral.LARGE, 0):  # from the Gram matrix, by Lanczos
        monkeypatch.setattr(spectral, "LARGE", large)
        assert r(np.zeros((3, 2)), kind) == 0.0


def test_r_by_lanczos_has_the_same_bits_in_every_run(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    X = np.zeros((60, 50))  # two groups of samples without a common feature
    X[:10, :10], X[10:, 10:] = np.random.default_rng(0).standard_normal((10, 10)), 2.0
    X[10:, 10:] *= np.random.default_rng(1).standard_normal((50, 40))
    X[0] *= 10
    found = [r(X, kind) for _ in range(30)]
    assert np.allclose(found, np.linalg.norm(X, 2) ** 2 / 60, rtol=1e-12)
    assert len(set(found)) == 1


def test_r_by_lanczos_is_not_misled_by_the_longest_row(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    X = np.zeros((30, 20))
    X[0, 0], X[1:, 1] = 2.0, 1.0  # λ_max = 29 lies across the longest row
    assert np.isclose(r(X, kind), 29 / 30, rtol=1e-10)


def test_conjugate_gradients_go_on_until_the_hardest_client_is_done(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    data = dataset("least-squares", 57, kind, n=50)
    block, V = one_block(LeastSquares(), data), np.random.default_rng(5).standard_normal((4, 50))
    V[1] = 0
    U = LeastSquares().majorizer_inverse(block, 1.0, 1e-3)(V)
    for i, f in enumerate(written_out("least-squares", block)):
        exact = np.linalg.solve(f.majorant + 1e-3 * np.eye(50), V[i])
        assert np.linalg.norm(U[i] - exact) <= 1e-10 * np.linalg.norm(exact)
