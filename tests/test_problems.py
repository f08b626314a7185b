"""Every problem: its gradient is that of its value, and what it promises about curvature holds."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.component import UserError
from mpifed.data.clients import Dataset
from mpifed.data.pool import Pool
from mpifed.host import checked, fill
from mpifed.problems import spectral
from mpifed.problems.base import Problem
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic, LogisticLoss
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from mpifed.problems.quadratic import Quadratic

NAMES = list(Problem.choices)
REAL_LABELS = ("least-squares", "quadratic")
CURVED = [name for name in NAMES if hasattr(Problem.member(name, "problem"), "majorizer_inverse")]
BOUNDED = [name for name in NAMES if hasattr(Problem.member(name, "problem"), "lipschitz")]


def dataset(name, size, kind="dense", dtype="float64", m=4, n=6):
    """m clients of ``size`` to ``size`` + 2 samples (n of a quadratic, whose matrices are symmetric)."""
    rng = np.random.default_rng([size, n])
    sizes = np.full(m, n) if name == "quadratic" else size + np.arange(m) % 3
    X, d = rng.standard_normal((sizes.sum(), n)) * (rng.random((sizes.sum(), n)) < 0.7), sizes.sum()
    if name == "quadratic":
        X = np.concatenate([Q + Q.T + 6 * np.eye(n) for Q in X.reshape(m, n, n)])
    y = rng.standard_normal(d) if name in REAL_LABELS else rng.integers(0, 2, d).astype(float)
    return Pool(sp.csr_array(X) if kind == "csr" else X, y, None, sizes, dtype)


def one_block(problem, data: Dataset):
    """All clients of ``data`` in one block: their sizes have one padded size."""
    (block,) = fill(data, data.rows, data.sizes, problem, [np.arange(data.m)], 0, np.dtype(data.dtype))
    return block


@pytest.fixture(params=["d_i < n", "d_i > n"])
def size(request):
    return 2 if request.param == "d_i < n" else 9


@pytest.fixture(params=["dense", "csr"])
def kind(request):
    return request.param


@pytest.fixture
def case(name, size, kind):
    """The problem, a block and a point a client."""
    problem = Problem.build(name, "problem")
    data = dataset(name, size, kind)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data)))
    return problem, one_block(problem, data), X


every = pytest.mark.parametrize("name", NAMES)
bounded = pytest.mark.parametrize("name", BOUNDED)
curved = pytest.mark.parametrize("name", CURVED)


@every
def test_the_gradient_is_that_of_the_value(case):
    problem, block, X = case
    step = 1e-5 * np.eye(X.shape[1])
    differences = np.stack([(problem.value(block, X + e) - problem.value(block, X - e)) / 2e-5 for e in step], axis=1)
    assert problem.value(block, X).shape == (len(block),)
    assert np.allclose(problem.grad(block, X), differences, rtol=1e-7, atol=1e-7)


@every
def test_value_and_gradient_together_are_the_same_bits_as_apart(case):
    problem, block, X = case
    for point in (X, X[0]):
        value, grad = problem.value_grad(block, point)
        assert value.tobytes() == problem.value(block, point).tobytes()
        assert grad.tobytes() == problem.grad(block, point).tobytes()


@every
def test_a_common_point_is_that_point_in_every_row_to_the_bit(case):
    problem, block, X = case
    rows = np.tile(X[1], (len(block), 1))
    for common, own in zip(problem.value_grad(block, X[1]), problem.value_grad(block, rows), strict=True):
        assert common.shape == own.shape
        assert common.tobytes() == own.tobytes()


@every
def test_dense_and_sparse_rows_give_the_same(name, size):
    problem = Problem.build(name, "problem")
    dense, csr = (one_block(problem, dataset(name, size, kind)) for kind in ("dense", "csr"))
    X = np.random.default_rng(3).standard_normal((len(dense), problem.dim(dataset(name, size))))
    for one, other in zip(problem.value_grad(dense, X), problem.value_grad(csr, X), strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


@every
def test_single_precision_stays_single_and_the_inputs_stay_as_they_are(name, size, kind):
    problem, data = Problem.build(name, "problem"), dataset(name, size, kind, "float32")
    block = one_block(problem, data)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data))).astype(np.float32)
    for array in (X, block.b, block.w, block.A.data if kind == "csr" else block.A):
        array.setflags(write=False)
    value, grad = problem.value_grad(block, X)
    assert value.dtype == grad.dtype == np.float32
    if name in CURVED:
        assert problem.majorizer_inverse(block, 0.5, 0.25)(X).dtype == np.float32


@bounded
def test_r_bounds_how_fast_the_gradient_changes(case):
    problem, block, X = case
    r = problem.lipschitz(block)
    rng = np.random.default_rng(4)
    assert r.shape == (len(block),)
    assert (r > 0).all()
    for length in (1e-3, 1.0, 30.0):
        for _ in range(20):
            Y = X + length * rng.standard_normal(X.shape)
            change = np.linalg.norm(problem.grad(block, X) - problem.grad(block, Y), axis=1)
            assert (change <= r * np.linalg.norm(X - Y, axis=1) * (1 + 1e-6)).all()


@pytest.mark.parametrize("large", [False, True], ids=["from the Gram matrix", "by Lanczos"])
def test_r_of_each_problem_is_what_its_table_says(large, size, kind, monkeypatch):
    if large:
        monkeypatch.setattr(spectral, "LARGE", 0)
    data = dataset("logistic", size, kind)
    top = [np.linalg.norm(A, 2) ** 2 for A in (one_block(LeastSquares(), data).dense(i) for i in range(data.m))]
    table = {LeastSquares(): top / data.sizes, Logistic(mu=0.5): top / (4 * data.sizes) + 0.5 / data.sizes,
             Logistic(mu=0.5, regulariser="whole"): top / (4 * data.sizes) + 0.5,
             NonconvexLogistic(mu=0.5): top / (4 * data.sizes) + 0.5 / data.sizes}
    for problem, r in table.items():
        assert np.allclose(problem.lipschitz(one_block(problem, data)), r, rtol=1e-10)


@pytest.mark.parametrize("large", [False, True], ids=["from the Gram matrix", "by Lanczos"])
def test_r_of_a_client_without_any_feature_is_zero(large, kind, monkeypatch):
    if large:
        monkeypatch.setattr(spectral, "LARGE", 0)
    X = np.zeros((3, 2))
    data = Pool(sp.csr_array(X) if kind == "csr" else X, np.ones(3), None, np.array([3]))
    assert LeastSquares().lipschitz(one_block(LeastSquares(), data)) == [0.0]


def test_r_by_lanczos_has_the_same_bits_in_every_run(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    X = np.zeros((60, 50))                                      # two groups of samples without a common feature
    X[:10, :10], X[10:, 10:] = np.random.default_rng(0).standard_normal((10, 10)), 2.0
    X[10:, 10:] *= np.random.default_rng(1).standard_normal((50, 40))
    X[0] *= 10
    data = Pool(sp.csr_array(X) if kind == "csr" else X, np.ones(60), None, np.array([60]))
    found = np.array([LeastSquares().lipschitz(one_block(LeastSquares(), data))[0] for _ in range(30)])
    assert np.allclose(found, np.linalg.norm(X, 2) ** 2 / 60, rtol=1e-12)
    assert len(set(found)) == 1


def test_r_by_lanczos_is_not_misled_by_the_longest_row(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    X = np.zeros((30, 20))
    X[0, 0], X[1:, 1] = 2.0, 1.0                                # λ_max = 29 lies across the longest row
    data = Pool(sp.csr_array(X) if kind == "csr" else X, np.ones(30), None, np.array([30]))
    assert np.isclose(LeastSquares().lipschitz(one_block(LeastSquares(), data))[0], 29 / 30, rtol=1e-10)


def test_the_quadratic_knows_its_smallest_and_largest_curvature(kind):
    problem, data = Quadratic(), dataset("quadratic", 6, kind)
    block = one_block(problem, data)
    spectra = np.array([np.linalg.eigvalsh(block.dense(i)) for i in range(data.m)])
    assert np.allclose(problem.convexity(block), spectra[:, 0])
    assert np.allclose(problem.lipschitz(block), spectra[:, -1])


def majorizer(problem, block, i):
    """H_i of fedgia, Table III, written out."""
    A, d, n = block.dense(i), block.d[i], block.n
    if isinstance(problem, Quadratic):
        return A
    if isinstance(problem, LeastSquares):
        return A.T @ A / d
    if isinstance(problem, LogisticLoss):
        return A.T @ A / (4 * d) + problem.mu / (1 if getattr(problem, "regulariser", "") == "whole" else d) * np.eye(n)
    return pytest.fail(f"write H_i of {problem.label()} out here")


@pytest.mark.parametrize("large", [False, True], ids=["by an inverse", "by conjugate gradients"])
@curved
def test_the_majorizer_is_inverted(case, large, monkeypatch):
    if large:
        monkeypatch.setattr(spectral, "LARGE", 0)
    problem, block, V = case
    for scale, shift in ((1.0, 1.0), (0.01, 1e-3), (2.0, 50.0)):
        U = problem.majorizer_inverse(block, scale, shift)(V)
        for i in range(len(block)):
            M = scale * majorizer(problem, block, i) + shift * np.eye(block.n)
            assert np.allclose(M @ U[i], V[i], rtol=1e-9, atol=1e-9)


def test_conjugate_gradients_go_on_until_the_hardest_client_is_done(kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    data = dataset("least-squares", 57, kind, n=50)
    block, V = one_block(LeastSquares(), data), np.random.default_rng(5).standard_normal((4, 50))
    V[1] = 0
    U = LeastSquares().majorizer_inverse(block, 1.0, 1e-3)(V)
    for i in range(4):
        exact = np.linalg.solve(majorizer(LeastSquares(), block, i) + 1e-3 * np.eye(50), V[i])
        assert np.linalg.norm(U[i] - exact) <= 1e-10 * np.linalg.norm(exact)


@pytest.mark.parametrize("whole", [False, True])
def test_the_majorizer_has_the_regulariser_where_it_stands(whole, size, kind):
    problem = Logistic(mu=5.0, regulariser="whole" if whole else "per-sample")
    block = one_block(problem, dataset("logistic", size, kind))
    V = np.random.default_rng(5).standard_normal((len(block), block.n))
    U = problem.majorizer_inverse(block, 1.0, 0.1)(V)
    for i in range(len(block)):
        assert np.allclose((majorizer(problem, block, i) + 0.1 * np.eye(block.n)) @ U[i], V[i])


@curved
def test_the_majorizer_lies_above_the_function(case):
    problem, block, X = case
    H = np.array([majorizer(problem, block, i) for i in range(len(block))])
    value, grad = problem.value_grad(block, X)
    for length in (0.1, 1.0, 10.0):
        step = length * np.random.default_rng(6).standard_normal(X.shape)
        model = value + np.vecdot(grad, step) + np.vecdot(step, np.matvec(H, step)) / 2
        assert (problem.value(block, X + step) <= model + 1e-9 * (1 + abs(model))).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("z", [1e4, -1e4, 30.0, 0.0])
@pytest.mark.parametrize("problem", [Logistic(mu=0.0), NonconvexLogistic(mu=0.0)], ids=lambda p: p.label())
def test_logistic_losses_are_right_and_silent_at_any_score(problem, z, dtype):
    data = Pool(np.ones((2, 1)), np.array([0.0, 1.0]), None, np.array([1, 1]), dtype)
    with np.errstate(all="raise", under="ignore"):
        value, grad = problem.value_grad(one_block(problem, data), np.array([z], dtype))
    exact = np.logaddexp(0, z)                                  # ln(1 + e^z)
    assert np.allclose(value, [exact, exact - z], rtol=1e-6, atol=1e-7)
    assert np.allclose(grad[:, 0], [np.exp(z - exact), np.exp(z - exact) - 1], rtol=1e-6, atol=1e-7)


def test_least_squares_is_written_out_right():
    data = dataset("least-squares", 2)
    block, x = one_block(LeastSquares(), data), np.arange(6.0)
    wanted = [np.sum((block.dense(i) @ x - block.b[i, :d]) ** 2) / (2 * d) for i, d in enumerate(data.sizes)]
    assert np.allclose(LeastSquares().value(block, x), wanted)


def test_a_quadratic_is_written_out_right():
    data = dataset("quadratic", 6)
    block, x = one_block(Quadratic(), data), np.arange(6.0)
    wanted = [x @ block.dense(i) @ x / 2 - block.b[i, :6] @ x for i in range(data.m)]
    assert np.allclose(Quadratic().value(block, x), wanted)


@pytest.mark.parametrize(("problem", "extra"), [
    (Logistic(mu=0.6), lambda x, d: 0.3 * x @ x / d),
    (Logistic(mu=0.6, regulariser="whole"), lambda x, d: 0.3 * x @ x),
    (NonconvexLogistic(mu=0.6), lambda x, d: 0.3 * np.sum(x**2 / (1 + x**2)) / d),
], ids=["inside of 1/d_i", "outside of 1/d_i", "non-convex"])
def test_the_regulariser_stands_inside_or_outside_of_the_mean(problem, extra, size, kind):
    data, x = dataset("logistic", size, kind), np.linspace(-2, 2, 6)
    block, bare = (one_block(p, data) for p in (problem, Logistic(mu=0.0)))
    added = problem.value(block, x) - Logistic(mu=0.0).value(bare, x)
    assert np.allclose(added, [extra(x, d) for d in data.sizes])


@pytest.mark.parametrize("problem", [Logistic(), NonconvexLogistic()], ids=lambda p: p.label())
def test_labels_of_minus_one_and_one_become_zero_and_one(problem):
    assert list(checked(problem, np.array([-1.0, 1.0, 1.0, -1.0]))) == [0, 1, 1, 0]
    assert list(checked(problem, np.array([0.0, 1.0, 1.0, 0.0]))) == [0, 1, 1, 0]


@pytest.mark.parametrize(("labels", "sentence"), [
    ([0.0, 2.0], "labels must be 0 and 1 or -1 and 1, but there is 2"),
    ([0.5], "but there is 0.5"),
    ([-1.0, 0.0, 1.0], "but there are -1, 0 and 1"),
])
@pytest.mark.parametrize("problem", [Logistic(), NonconvexLogistic()], ids=lambda p: p.label())
def test_other_labels_are_refused_by_a_sentence(problem, labels, sentence):
    with pytest.raises(UserError, match=rf"^problem '{problem.label()}' cannot use these data: .*{sentence}"):
        checked(problem, np.array(labels))


def test_a_quadratic_refuses_clients_that_have_no_square_matrix():
    with pytest.raises(ValueError, match="every client needs 6 rows, the rows of its matrix, but client 0 has 9"):
        Quadratic().dim(dataset("logistic", 9))
