"""Classifiers: labels, ties, sizes, a network against a plain loop, curvature of softmax and kinks of the SVM."""

from itertools import pairwise

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.data.pool import Pool
from mpifed.networks.mlp import MLP
from mpifed.problems.classifier import SVM
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax
from tests.helpers.problem_cases import dataset, one_block

CLASSIFIERS = [Softmax(), SVM(), MLP(hidden=(3,))]
classifiers = pytest.mark.parametrize("problem", CLASSIFIERS, ids=lambda p: p.label())


@classifiers
@pytest.mark.parametrize(("labels", "wrong"), [([0.0, 0.5], "0.5"), ([-1.0, 1.0], "-1"), ([1.0, 2.25, 0.0], "2.25")])
def test_labels_that_are_no_classes_are_refused_by_a_sentence(problem, labels, wrong):
    sentence = f"labels must be whole numbers 0, 1 … C−1, but there is {wrong}"
    with pytest.raises(UserError, match=rf"^problem '{problem.label()}' cannot use these data: {sentence}$"):
        problem.check_labels(np.array(labels))
    assert list(problem.check_labels(np.array([2.0, 0.0, 1.0]))) == [2, 0, 1]


@classifiers
def test_one_class_alone_is_refused_where_a_run_starts(problem):
    data = Pool(np.ones((4, 2)), np.zeros(4), None, np.array([4]))
    with pytest.raises(ValueError, match="whole numbers 0, 1 … C−1 of at least 2 classes"):
        problem.initial(data, 0)


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
