"""The matrices of second derivatives: of every problem that has them, symmetric to the bit, for each client alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.symmetric import pack
from mpifed.kernels import sparse_products as csr_block
from mpifed.kernels.blocks import Block
from mpifed.kernels.sparse_products import make_sparse_block
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.logistic import Logistic
from tests.helpers.problem_cases import NAMES, TWICE, dataset, having, one_block, problem_of

MATRICES = having("hess")
matrices = pytest.mark.parametrize("name", MATRICES)


@pytest.fixture(params=["filled in", "from nonzeros"])
def way(request, monkeypatch):
    """Both ways to make the matrices of CSR samples."""
    monkeypatch.setattr(csr_block, "FILL", np.inf if request.param == "filled in" else 0)


@matrices
def test_matrices_are_the_second_derivatives_and_packed_ones_their_upper_triangles(case):
    problem, block, X = case
    steps, V = 1e-5 * np.eye(X.shape[1]), np.random.default_rng(7).standard_normal(X.shape)
    columns = [(problem.grad(block, X + e) - problem.grad(block, X - e)) / 2e-5 for e in steps]
    H = problem.hess(block, X)
    assert H.shape == (len(block), X.shape[1], X.shape[1])
    assert np.allclose(H, np.stack(columns, axis=2), rtol=1e-6, atol=1e-7)
    products = problem.hessian(block, X)(V)
    assert products.shape == X.shape
    assert np.allclose(np.matvec(H, V), products, rtol=1e-11, atol=1e-13)
    packed = problem.packed_hess(block, X)
    assert np.allclose(packed, pack(H), rtol=1e-12, atol=1e-14)
    before = packed.copy()
    packed[:] = 7
    assert np.array_equal(problem.packed_hess(block, X), before), "in an array of their own"


@matrices
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sparse_samples_have_the_matrices_of_dense_ones_either_way(name, dtype, way):
    problem = problem_of(name)
    dense, csr = (one_block(problem, dataset(name, 9, kind, dtype)) for kind in ("dense", "csr"))
    X = np.random.default_rng(3).standard_normal((4, problem.dim(dataset(name, 9)))).astype(dtype)
    H, right = problem.hess(csr, X), problem.hess(dense, X)
    assert H.dtype == right.dtype == dtype
    assert np.allclose(H, right, rtol=1e-5 if dtype == "float32" else 1e-12, atol=np.finfo(dtype).eps * 10)
    assert (H.mT == H).all()
    assert H[[3, 1]].tobytes() == problem.hess(csr.take(np.array([3, 1])), X[[3, 1]]).tobytes()


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_loss_that_bends_down_has_matrices_too(kind, way):
    data = dataset("logistic", 9, kind)
    problem, block = Bent(), one_block(Bent(), data)
    X = np.random.default_rng(4).standard_normal((data.m, data.n))
    for i, H in enumerate(problem.hess(block, X)):
        A = block.dense(i)
        assert np.allclose(H, A.T @ (-np.sin(A @ X[i])[:, None] * A) / block.d[i], rtol=1e-12, atol=1e-14)
        assert (H == H.T).all()
        assert H.tobytes() == problem.hess(block.take(np.array([i])), X[i : i + 1])[0].tobytes()


def test_rows_that_name_a_column_twice_or_in_any_order_are_those_of_the_matrix(way):
    A = sp.csr_array((np.arange(1.0, 8), [4, 0, 4, 3, 1, 0, 2], [0, 3, 3, 5, 7]), shape=(4, 5))
    csr = make_sparse_block([(A, np.zeros(4))], np.array([4]), 5, float)
    dense = Block(A.toarray()[None], np.zeros((1, 4)), np.array([4]), 5)
    X = np.linspace(-1, 1, 5)
    H = Logistic().hess(csr, X)
    assert np.allclose(H, Logistic().hess(dense, X), rtol=1e-14)
    assert (H.mT == H).all()
    assert not csr.A.has_canonical_format


def test_a_problem_that_cannot_have_them_does_not_offer_them():
    assert MATRICES == TWICE, "every problem with products has matrices"
    assert {name for name in NAMES if name not in MATRICES} == {"svm", "svm, lam", "mlp", "mlp, lam"}
    assert not Straight.has("hess")
    assert not Own.has("hess"), "its products are those of another matrix"
    assert OwnBoth.has("hess")
    block = one_block(OwnBoth(), dataset("logistic", 9))
    assert OwnBoth().packed_hess(block, np.zeros(6)).tobytes() == pack(np.tile(2 * np.eye(6), (4, 1, 1))).tobytes()


class Straight(LinearModel, tag="straight"):
    """A loss without second derivatives."""

    curvature = 1.0

    def loss(self, Z, b):
        return np.abs(Z - b)

    def slope(self, Z, b):
        return np.sign(Z - b)


class Bent(Straight, tag="bent"):
    """ℓ(z) = sin z."""

    def loss(self, Z, b):
        return np.sin(Z)

    def slope(self, Z, b):
        return np.cos(Z)

    def bend(self, Z):
        return -np.sin(Z)


class Own(Bent, tag="own"):
    def hessian(self, block, X):
        return lambda V: 2 * V


class OwnBoth(Own, tag="own-both"):
    def hess(self, block, X):
        return np.tile(2 * np.eye(block.n), (len(block), 1, 1))
