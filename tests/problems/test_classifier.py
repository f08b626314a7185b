"""Classifiers: labels, ties, and scores against a plain loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.problems.logistic import Logistic
from mpifed.problems.mlp import MLP
from mpifed.problems.softmax import Softmax
from mpifed.problems.svm import SVM
from tests.helpers.problem_cases import dataset, one_block

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
