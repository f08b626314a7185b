"""Linear models: strong convexity, clipped gradients, the quadratic that lies above them, and logistic losses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.problems import gram as spectral
from mpifed.problems.classifier import SVM
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic, NonconvexLogistic
from mpifed.problems.softmax import Softmax
from tests.helpers.problem_cases import CLIPPED, CURVED, dataset, drawn, one_block, problem_of, written_out

curved = pytest.mark.parametrize("name", CURVED)
clipped = pytest.mark.parametrize("name", CLIPPED)


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
    assert np.allclose(problem.clipped_grad(block, X, 1e9), problem.grad(block, X), rtol=1e-12, atol=1e-14)


def test_clipping_leaves_the_labels_as_they_are_where_a_slope_returns_them(monkeypatch):
    monkeypatch.setattr(LeastSquares, "slope", lambda self, Z, b: b)
    block = one_block(LeastSquares(), dataset("least-squares", 9))
    before = block.b.copy()
    LeastSquares().clipped_grad(block, np.zeros(6), 0.1)
    assert np.array_equal(block.b, before)


@clipped
@given(seed=st.integers(0, 2**32), bound=st.floats(1e-3, 1e3), scale=st.floats(1e-3, 1e3))
def test_replacing_one_sample_moves_a_clipped_gradient_by_at_most_twice_the_bound_over_d(name, seed, bound, scale):
    problem, rng, d = problem_of(name), np.random.default_rng(seed), 5
    A, b = rng.standard_normal((2, d, 3)) * scale, drawn(name.split(",")[0], rng, (2, d))
    A[1, 1:], b[1, 1:] = A[0, 1:], b[0, 1:]  # neighbours: they differ in the first sample
    block = one_block(problem, Pool(A.reshape(-1, 3), b.ravel(), None, np.array([d, d])))
    one, other = problem.clipped_grad(block, rng.standard_normal(3), bound)
    assert np.abs(one - other).sum() <= 2 * bound / d * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("large", [False, True], ids=["by an inverse", "by conjugate gradients"])
@curved
def test_the_majorizer_is_inverted(case, name, large, monkeypatch):
    if large:
        monkeypatch.setattr(spectral, "LARGE", 0)
    problem, block, V = case
    for scale, shift in ((1.0, 1.0), (1.0, 0.1), (0.01, 1e-3), (2.0, 50.0)):
        U = problem.majorizer_inverse(block, scale, shift)(V)
        for i, f in enumerate(written_out(name, block)):
            M = scale * f.majorant + shift * np.eye(block.n)
            assert np.allclose(M @ U[i], V[i], rtol=1e-9, atol=1e-9)


@curved
def test_the_majorizer_lies_above_the_function(case, name):
    problem, block, X = case
    H = np.array([f.majorant for f in written_out(name, block)])
    value, grad = problem.value_grad(block, X)
    for length in (0.1, 1.0, 10.0):
        step = length * np.random.default_rng(6).standard_normal(X.shape)
        model = value + np.vecdot(grad, step) + np.vecdot(step, np.matvec(H, step)) / 2
        assert (problem.value(block, X + step) <= model + 1e-9 * (1 + abs(model))).all()


@pytest.mark.parametrize("problem", [LeastSquares(), Logistic(), Softmax(), SVM()], ids=lambda p: p.label())
def test_linear_models_start_at_zero(problem):
    assert not problem.initial(dataset(problem.label(), 9), 5).any()


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
def test_labels_of_minus_one_and_one_become_zero_and_one_and_others_are_refused_by_a_sentence(problem):
    for labels in ([-1.0, 1.0, 1.0, -1.0], [0.0, 1.0, 1.0, 0.0]):
        assert list(problem.check_labels(np.array(labels))) == [0, 1, 1, 0]
    wrong = f"^problem '{problem.label()}' cannot use these data: labels must be 0 and 1 or -1 and 1, but there "
    for labels, told in (([0.0, 2.0], "is 2$"), ([0.5], "is 0.5$"), ([-1.0, 0.0, 1.0], "are -1, 0 and 1$")):
        with pytest.raises(UserError, match=wrong + told):
            problem.check_labels(np.array(labels))
