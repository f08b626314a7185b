"""Every problem: its gradient is that of its value, and what it promises about curvature holds."""

import numpy as np
import pytest

from mpifed.problems import gram as spectral
from mpifed.problems.classifier import Classifier
from tests.helpers.problem_cases import NAMES, dataset, one_block, problem_of, written_out

every = pytest.mark.parametrize("name", NAMES)
LARGE = [(name, 5003) for name in ("softmax, lam", "svm, lam", "mlp, lam")]  # more numbers than numpy adds at a time
large_too = pytest.mark.parametrize(("name", "features"), [*((name, 6) for name in NAMES), *LARGE])


def computed(problem, block, X, V):
    """All that a problem computes of a block at X (n,) or (c, n); V (c, n) are the vectors of products."""
    found = dict(zip(("value", "gradient"), problem.value_grad(block, X), strict=True))
    if block.n > 1000:
        return found  # Hessians are too large
    if problem.has("hessian"):
        found["products"] = problem.hessian(block, X)(V)
    if problem.has("hess"):
        found["matrices"], found["packed"] = problem.hess(block, X), problem.packed_hess(block, X)
        assert (found["matrices"] == found["matrices"].mT).all(), "symmetric to the bit"
    if problem.has("majorizer_inverse"):
        found["solutions"] = problem.majorizer_inverse(block, 0.5, 0.25)(V)
    if problem.has("clipped_grad"):
        found["clipped"] = problem.clipped_grad(block, X, 0.5)
    return found


@every
def test_the_gradient_is_that_of_the_value_and_together_they_are_the_same_bits_as_apart(case):
    problem, block, X = case
    step = 1e-5 * np.eye(X.shape[1])
    differences = np.stack([(problem.value(block, X + e) - problem.value(block, X - e)) / 2e-5 for e in step], axis=1)
    assert problem.value(block, X).shape == (len(block),)
    assert np.allclose(problem.grad(block, X), differences, rtol=1e-7, atol=1e-7)
    for point in (X, X[0]):
        value, grad = problem.value_grad(block, point)
        assert value.tobytes() == problem.value(block, point).tobytes()
        assert grad.tobytes() == problem.grad(block, point).tobytes()


@pytest.mark.parametrize("name", [name for name in NAMES if "mlp" not in name])
@pytest.mark.parametrize("large", [False, True], ids=["from Gram matrices", "by Lanczos"])
def test_a_problem_is_what_its_formula_says(case, name, large, monkeypatch):
    """Parameters of linear classifiers flat, [W row-major (classes × features) | bias]; the bias is not regularised."""
    monkeypatch.setattr(spectral, "LARGE", 0 if large else spectral.LARGE)
    problem, block, X = case
    for i, f in enumerate(written_out(name, block)):
        assert f.n == X.shape[1]
        assert np.isclose(problem.value(block, X)[i], f.value(X[i]), rtol=1e-12)
        assert np.allclose(problem.grad(block, X)[i], f.gradient(X[i]), rtol=1e-11, atol=1e-13)
        if problem.has("lipschitz"):
            assert np.isclose(problem.lipschitz(block)[i], f.lipschitz, rtol=1e-10)
        if name == "quadratic":
            assert np.isclose(problem.convexity(block)[i], f.convexity)
        if isinstance(problem, Classifier):
            assert np.array_equal(problem.predict(block, X)[i, : f.d], f.scores(X[i]).argmax(axis=1))


@every
def test_single_precision_stays_single_and_the_inputs_stay_as_they_are(name, size, kind):
    problem, data = problem_of(name), dataset(name, size, kind, "float32")
    block = one_block(problem, data)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data))).astype(np.float32)
    for array in (X, block.b, block.w, block.A.data if kind == "csr" else block.A):
        array.setflags(write=False)
    assert {found.dtype for found in computed(problem, block, X, X).values()} == {np.dtype("float32")}


@large_too
def test_the_bits_of_a_client_do_not_depend_on_its_neighbours(case):
    """Nor on its place, for classifiers and networks as well (linear models: test_blocks)."""
    problem, block, X = case
    own, common = computed(problem, block, X, X[::-1].copy()), computed(problem, block, X[0], X)
    for rows in (np.array([2]), np.array([3, 1])):
        part = block.take(rows)
        for what, found in computed(problem, part, X[rows], X[::-1][rows].copy()).items():
            assert own[what][rows].tobytes() == found.tobytes(), what
        for what, found in computed(problem, part, X[0], X[rows]).items():
            assert common[what][rows].tobytes() == found.tobytes(), what


@large_too
def test_a_common_point_is_that_point_in_every_row_to_the_bit(case):
    problem, block, X = case
    rows = computed(problem, block, np.tile(X[1], (len(block), 1)), X)
    for what, found in computed(problem, block, X[1], X).items():
        if what == "products":
            assert np.allclose(found, rows[what], rtol=1e-12, atol=1e-14)
        else:
            assert found.tobytes() == rows[what].tobytes(), what
