"""Every problem: its gradient is that of its value, and what it promises about curvature holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.base import Dataset
from mpifed.data.fill import Layout, fill
from mpifed.data.pool import Pool
from mpifed.problems import gram as spectral
from mpifed.problems.base import Problem
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.logistic import Logistic, LogisticLoss
from mpifed.problems.mlp import MLP
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from mpifed.problems.quadratic import Quadratic
from mpifed.problems.softmax import Softmax
from mpifed.problems.svm import SVM

LAYERS = {"hidden": [5, 4]}
TORCH = ("cnn", "torch")  # test_torch
PROBLEMS = {  # every other problem, some with more than one set of options
    **{name: {"name": name} for name in Problem.choices if name not in TORCH},
    "mlp": {"name": "mlp", **LAYERS},
    "logistic, whole": {"name": "logistic", "mu": 0.5, "regulariser": "whole"},
    "softmax, lam": {"name": "softmax", "lam": 0.3},
    "softmax, no bias": {"name": "softmax", "lam": 0.3, "bias": False},
    "svm, lam": {"name": "svm", "lam": 0.3, "bias": False},
    "mlp, lam": {"name": "mlp", "lam": 0.3, **LAYERS},
}
NAMES = list(PROBLEMS)
REAL_LABELS = ("least-squares", "quadratic")
CLASSES = ("softmax", "svm", "mlp")  # labels 0, 1, 2; of the others 0 and 1


def having(method):
    return [name for name in NAMES if Problem.member(PROBLEMS[name]["name"], "problem").has(method)]


CURVED, BOUNDED, TWICE, CLIPPED = map(having, ("majorizer_inverse", "lipschitz", "hessian", "clipped_grad"))


def problem_of(name):
    return Problem.build(PROBLEMS[name], "problem")


def dataset(name, size, kind="dense", dtype="float64", m=4, n=6):
    """m clients of ``size`` to ``size`` + 2 samples (n of a quadratic, whose matrices are symmetric)."""
    name, rng = name.split(",")[0], np.random.default_rng([size, n])
    sizes = np.full(m, n) if name == "quadratic" else size + np.arange(m) % 3
    X, d = rng.standard_normal((sizes.sum(), n)) * (rng.random((sizes.sum(), n)) < 0.7), sizes.sum()
    if name == "quadratic":
        X = np.concatenate([Q + Q.T + 6 * np.eye(n) for Q in X.reshape(m, n, n)])
    y = rng.standard_normal(d) if name in REAL_LABELS else rng.integers(0, 3 if name in CLASSES else 2, d).astype(float)
    if name in CLASSES:
        y[:3] = 0, 1, 2
    return Pool(sp.csr_array(X) if kind == "csr" else X, y, None, sizes, dtype)


def one_block(problem, data: Dataset):
    """All clients of ``data`` in one block: their sizes have one padded size."""
    (block,) = fill(data, data.rows, Layout(0, data.sizes, [np.arange(data.m)], np.dtype(data.dtype)), problem.labels)
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
    problem = problem_of(name)
    data = dataset(name, size, kind)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data)))
    return problem, one_block(problem, data), X


every = pytest.mark.parametrize("name", NAMES)
bounded = pytest.mark.parametrize("name", BOUNDED)
curved = pytest.mark.parametrize("name", CURVED)
twice = pytest.mark.parametrize("name", TWICE)
clipped = pytest.mark.parametrize("name", CLIPPED)


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
    problem = problem_of(name)
    dense, csr = (one_block(problem, dataset(name, size, kind)) for kind in ("dense", "csr"))
    X = np.random.default_rng(3).standard_normal((len(dense), problem.dim(dataset(name, size))))
    for one, other in zip(problem.value_grad(dense, X), problem.value_grad(csr, X), strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


@every
def test_single_precision_stays_single_and_the_inputs_stay_as_they_are(name, size, kind):
    problem, data = problem_of(name), dataset(name, size, kind, "float32")
    block = one_block(problem, data)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data))).astype(np.float32)
    for array in (X, block.b, block.w, block.A.data if kind == "csr" else block.A):
        array.setflags(write=False)
    value, grad = problem.value_grad(block, X)
    assert value.dtype == grad.dtype == np.float32
    if name in CURVED:
        assert problem.majorizer_inverse(block, 0.5, 0.25)(X).dtype == np.float32


@every
def test_the_bits_of_a_client_do_not_depend_on_its_neighbours(case):
    """Nor on its place, for classifiers and networks as well (linear models: test_blocks)."""
    problem, block, X = case
    H = problem.hessian(block, X)(X[::-1].copy()) if problem.has("hessian") else X
    both = *problem.value_grad(block, X), H, *problem.value_grad(block, X[0])
    for rows in (np.array([2]), np.array([3, 1])):
        part = block.take(rows)
        H = problem.hessian(part, X[rows])(X[::-1][rows].copy()) if problem.has("hessian") else X[rows]
        for together, apart in zip(
            both, (*problem.value_grad(part, X[rows]), H, *problem.value_grad(part, X[0])), strict=True
        ):
            assert together[rows].tobytes() == apart.tobytes()


@pytest.mark.parametrize("name", ["softmax, lam", "svm, lam", "mlp, lam"])
def test_nor_do_they_where_there_are_many_parameters(name, kind):
    """More numbers than numpy adds up at a time; the regulariser is a sum over all of them."""
    data = dataset(name, 9, kind, n=5003)
    problem, block = problem_of(name), one_block(problem_of(name), data)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data)))
    together, common = problem.value_grad(block, X), problem.value_grad(block, X[1])
    for i in range(data.m):
        part = block.take(np.array([i]))
        for both, alone in zip(together, problem.value_grad(part, X[i : i + 1]), strict=True):
            assert both[i].tobytes() == alone[0].tobytes()
    for one, rows in zip(common, problem.value_grad(block, np.tile(X[1], (data.m, 1))), strict=True):
        assert one.tobytes() == rows.tobytes()


@twice
def test_products_with_the_hessian_are_differences_of_gradients(case):
    problem, block, X = case
    V, step = np.random.default_rng(7).standard_normal(X.shape), 1e-5
    differences = (problem.grad(block, X + step * V) - problem.grad(block, X - step * V)) / (2 * step)
    product = problem.hessian(block, X)(V)
    assert product.shape == X.shape
    assert np.allclose(product, differences, rtol=1e-6, atol=1e-7)


@twice
def test_the_hessian_is_symmetric_and_linear_and_takes_a_common_point(case):
    problem, block, X = case
    rng = np.random.default_rng(8)
    U, V, H = rng.standard_normal(X.shape), rng.standard_normal(X.shape), problem.hessian(block, X)
    assert np.allclose(np.vecdot(U, H(V)), np.vecdot(V, H(U)), rtol=1e-10, atol=1e-12)
    assert np.allclose(H(2 * U - V), 2 * H(U) - H(V), rtol=1e-10, atol=1e-12)
    common, rows = problem.hessian(block, X[1])(V), problem.hessian(block, np.tile(X[1], (len(block), 1)))(V)
    assert np.allclose(common, rows, rtol=1e-12, atol=1e-14)


@twice
def test_products_with_the_hessian_stay_single(name, size, kind):
    problem, data = problem_of(name), dataset(name, size, kind, "float32")
    X = np.ones((data.m, problem.dim(data)), np.float32)
    assert problem.hessian(one_block(problem, data), X)(X).dtype == np.float32


@pytest.mark.parametrize("name", [name for name in TWICE if name in BOUNDED])
def test_r_bounds_the_hessian(case):
    problem, block, X = case
    r, rng = problem.lipschitz(block), np.random.default_rng(9)
    for length in (0.0, 0.1, 3.0):
        H = problem.hessian(block, length * X)
        V = rng.standard_normal(X.shape)
        for _ in range(30):  # the power method finds the largest curvature
            V = H(V)
            norm = np.linalg.norm(V, axis=1)
            V /= np.maximum(norm, 1e-300)[:, None]
        assert (norm <= r * (1 + 1e-9)).all()


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


@pytest.mark.parametrize(
    ("problem", "alpha"),
    [
        (Softmax(lam=0.3, bias=False), 0.3),
        (Softmax(lam=0.3), 0.0),
        (Softmax(bias=False), 0.0),
        (Logistic(mu=0.6), 0.1),
        (Logistic(mu=0.6, regulariser="whole"), 0.6),
        (Logistic(mu=0.0), 0.0),
    ],
    ids=repr,
)
def test_strong_convexity_is_what_the_regulariser_covers(problem, alpha, kind):
    A, _ = dataset("logistic", 6, kind, m=1).rows(0, 1)
    data = Pool(A, np.array([0.0, 1, 1, 0, 1, 0]), None, np.array([6]))
    block = one_block(problem, data)
    assert np.allclose(problem.convexity(block), alpha)
    rng, n = np.random.default_rng(10), problem.dim(data)
    X, V = rng.standard_normal((2, 1, n))
    assert np.vecdot(V, problem.hessian(block, X)(V))[0] >= alpha * np.vecdot(V, V)[0] * (1 - 1e-9)


@clipped
def test_the_gradient_of_every_sample_is_clipped_to_its_bound(case):
    problem, block, X = case
    for bound in (0.05, 1.0, 7.0):
        wanted = np.zeros_like(X)
        for i, d in enumerate(block.d):
            for a, b in zip(block.dense(i), block.b[i, :d], strict=True):
                g = problem.slope(np.array([a @ X[i]]), np.array([b]))[0] * a
                wanted[i] += g * min(1, bound / max(np.abs(g).sum(), 1e-300)) / d
        wanted += problem.weight(block.d)[:, None] * problem.penalty_grad(X)
        assert np.allclose(problem.clipped_grad(block, X, bound), wanted, rtol=1e-12, atol=1e-14)


@clipped
def test_a_large_bound_clips_nothing_and_a_common_point_is_taken(case):
    problem, block, X = case
    assert np.allclose(problem.clipped_grad(block, X, 1e9), problem.grad(block, X), rtol=1e-12, atol=1e-14)
    rows = np.tile(X[1], (len(block), 1))
    assert problem.clipped_grad(block, X[1], 0.5).tobytes() == problem.clipped_grad(block, rows, 0.5).tobytes()


@clipped
def test_clipping_keeps_the_type_and_the_inputs(name, size, kind):
    problem, data = problem_of(name), dataset(name, size, kind, "float32")
    block, X = one_block(problem, data), np.ones((data.m, 6), np.float32)
    for array in (X, block.b, block.w, block.A.data if kind == "csr" else block.A):
        array.setflags(write=False)
    assert problem.clipped_grad(block, X, 0.5).dtype == np.float32


@clipped
@given(seed=st.integers(0, 2**32), bound=st.floats(1e-3, 1e3), scale=st.floats(1e-3, 1e3))
def test_replacing_one_sample_moves_a_clipped_gradient_by_at_most_twice_the_bound_over_d(name, seed, bound, scale):
    problem, rng, d = problem_of(name), np.random.default_rng(seed), 5
    A, b = rng.standard_normal((2, d, 3)) * scale, rng.integers(0, 2, (2, d)).astype(float)
    A[1, 1:], b[1, 1:] = A[0, 1:], b[0, 1:]  # neighbours: they differ in the first sample
    block = one_block(problem, Pool(A.reshape(-1, 3), b.ravel(), None, np.array([d, d])))
    one, other = problem.clipped_grad(block, rng.standard_normal(3), bound)
    assert np.abs(one - other).sum() <= 2 * bound / d * (1 + 1e-12) + 1e-13


def test_only_a_loss_of_one_score_clips():
    assert {problem_of(name).label() for name in CLIPPED} == {
        name
        for name in Problem.choices
        if name not in TORCH and issubclass(Problem.member(name, "problem"), LinearModel)
    }


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
    table = {
        LeastSquares(): top / data.sizes,
        Logistic(mu=0.5): top / (4 * data.sizes) + 0.5 / data.sizes,
        Logistic(mu=0.5, regulariser="whole"): top / (4 * data.sizes) + 0.5,
        NonconvexLogistic(mu=0.5): top / (4 * data.sizes) + 0.5 / data.sizes,
    }
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
    X = np.zeros((60, 50))  # two groups of samples without a common feature
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
    X[0, 0], X[1:, 1] = 2.0, 1.0  # λ_max = 29 lies across the longest row
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
    exact = np.logaddexp(0, z)  # ln(1 + e^z)
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


def test_a_quadratic_refuses_clients_that_have_no_square_matrix():
    with pytest.raises(ValueError, match="every client needs 6 rows, the rows of its matrix, but client 0 has 9"):
        Quadratic().dim(dataset("logistic", 9))


CLASSIFIERS = [Softmax(), SVM(), MLP(hidden=(3,))]
classifiers = pytest.mark.parametrize("problem", CLASSIFIERS, ids=lambda p: p.label())


@classifiers
@pytest.mark.parametrize(("labels", "wrong"), [([0.0, 0.5], "0.5"), ([-1.0, 1.0], "-1"), ([1.0, 2.25, 0.0], "2.25")])
def test_labels_that_are_no_classes_are_refused_by_a_sentence(problem, labels, wrong):
    sentence = f"labels must be whole numbers 0, 1 … C−1, but there is {wrong}"
    with pytest.raises(UserError, match=rf"^problem '{problem.label()}' cannot use these data: {sentence}$"):
        problem.checked_labels(np.array(labels))
    assert list(problem.checked_labels(np.array([2.0, 0.0, 1.0]))) == [2, 0, 1]


@pytest.mark.parametrize("problem", CLASSIFIERS[:3], ids=lambda p: p.label())
def test_one_class_alone_is_refused_where_a_run_starts(problem):
    data = Pool(np.ones((4, 2)), np.zeros(4), None, np.array([4]))
    with pytest.raises(ValueError, match="whole numbers 0, 1 … C−1 of at least 2 classes"):
        problem.initial(data, 0)


def softmax_by_loop(W, bias, A, b, lam):
    scores = [[w @ a + c for w, c in zip(W, bias, strict=True)] for a in A]
    loss = [np.log(np.sum(np.exp(z))) - z[int(k)] for z, k in zip(scores, b, strict=True)]
    return np.mean(loss) + lam / 2 * np.sum(W**2)


def svm_by_loop(W, bias, A, b, lam):
    total = 0.0
    for a, k in zip(A, b.astype(int), strict=True):
        z = W @ a + bias
        total += sum(max(0.0, 1 - z[k] + z[j]) for j in range(len(W)) if j != k) / len(W)
    return total / len(A) + lam / 2 * np.sum(W**2)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("kind_of", "by_loop"), [(Softmax, softmax_by_loop), (SVM, svm_by_loop)], ids=["softmax", "svm"]
)
def test_a_linear_classifier_is_written_out_right(kind_of, by_loop, bias, size, kind):
    """Parameters flat, [W row-major (classes × features) | bias]; the bias is not regularised."""
    data, problem = dataset("softmax", size, kind), kind_of(lam=0.4, bias=bias)
    block, rng = one_block(problem, data), np.random.default_rng(11)
    W, c = rng.standard_normal((3, 6)), rng.standard_normal(3) * bias
    x = np.concatenate([W.ravel(), c]) if bias else W.ravel()
    assert problem.dim(data) == len(x)
    wanted = [by_loop(W, c, block.dense(i), block.b[i, :d], 0.4) for i, d in enumerate(data.sizes)]
    assert np.allclose(problem.value(block, x), wanted, rtol=1e-12)
    best = [np.argmax(block.dense(i) @ W.T + c, axis=1) for i in range(data.m)]
    assert all(np.array_equal(problem.predict(block, x)[i, :d], best[i]) for i, d in enumerate(data.sizes))


def test_a_network_is_written_out_right(size, kind):
    """Parameters flat, layer by layer, [W row-major (out × in) | bias]."""
    data, problem = dataset("mlp", size, kind), MLP(hidden=(5, 4), lam=0.4)
    block, rng = one_block(problem, data), np.random.default_rng(12)
    layers = [(rng.standard_normal((o, i)), rng.standard_normal(o)) for i, o in ((6, 5), (5, 4), (4, 3))]
    x = np.concatenate([part.ravel() for layer in layers for part in layer])
    assert problem.dim(data) == len(x) == 6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3
    wanted = []
    for i, d in enumerate(data.sizes):
        loss = []
        for a, k in zip(block.dense(i), block.b[i, :d].astype(int), strict=True):
            for W, c in layers[:-1]:
                a = np.maximum(W @ a + c, 0)
            z = layers[-1][0] @ a + layers[-1][1]
            loss.append(np.log(np.exp(z).sum()) - z[k])
        wanted.append(np.mean(loss) + 0.2 * sum(np.sum(W**2) for W, _ in layers))
    assert np.allclose(problem.value(block, x), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "n"), [(Softmax(), 7850), (SVM(), 7850), (MLP(), 79510), (Softmax(bias=False), 7840)], ids=repr
)
def test_models_of_mnist_have_the_size_of_the_papers(problem, n):
    data = Dataset()
    data.m, data.n, data.classes, data.sizes = 1, 784, 10, np.array([1])
    assert problem.dim(data) == n == len(problem.initial(data, 0))


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


@classifiers
def test_a_tie_goes_to_the_lowest_class(problem):
    data = dataset("softmax", 6)
    block = one_block(problem, data)
    assert not problem.predict(block, np.zeros(problem.dim(data))).any()
    assert not Logistic().predict(one_block(Logistic(), dataset("logistic", 6)), np.zeros(6)).any()


@pytest.mark.parametrize(
    "problem", [MLP(hidden=(4, 7)), Softmax(start="uniform"), SVM(start="uniform", bias=False)], ids=repr
)
def test_the_first_model_comes_from_the_seed(problem):
    """Every layer uniform in ±1/√(its inputs)."""
    data = dataset("mlp", 9)
    x = problem.initial(data, 5)
    assert x.shape == (problem.dim(data),)
    assert x.tobytes() == problem.initial(data, 5).tobytes()
    assert not np.array_equal(x, problem.initial(data, 6))
    widths = (6, 4, 7, 3) if isinstance(problem, MLP) else (6, 3)
    bounds = np.concatenate([np.full((i + (x.size != 18)) * o, i**-0.5) for i, o in pairwise(widths)])
    assert (np.abs(x) <= bounds).all()
    ratio = x / bounds
    assert np.abs(ratio).max() > 0.9
    assert abs(ratio.mean()) < 0.35


@pytest.mark.parametrize("problem", [LeastSquares(), Logistic(), Softmax(), SVM()], ids=lambda p: p.label())
def test_linear_models_start_at_zero(problem):
    assert not problem.initial(dataset(problem.label(), 9), 5).any()


@pytest.mark.parametrize("size", [3, 6, 100])
def test_a_quadratic_has_no_samples_to_be_drawn(size):
    """On a "mini-batch" it is what it is, or the pair is refused before round one."""

    def model(batch_size):
        table = {
            "data": {"name": "quadratic", "clients": 4, "features": 6},
            "rounds": 3,
            "algorithm": {"name": "flame", "lr": 0.1, "batch_size": batch_size},
        }
        return mpifed.run(table).x

    try:
        found = model(size)
    except UserError:
        return
    assert np.allclose(found, model(0))
