"""Scores and gradients of all clients in one launch."""

from functools import partial

import numpy as np
import pytest

from mpifed.data.cuda import layout
from tests.data.cuda.simulated.cases import MODELS, Case

same = partial(np.testing.assert_array_equal, strict=True)
every = pytest.mark.parametrize("name", MODELS)


@every
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("own", [True, False])
def test_are_those_of_the_problem_up_to_rounding(name, dtype, own):
    case = Case(name, 3, dtype)
    X = case.X if own else case.X[1]
    Z, G = case.kernels.gradients(case.clients(), X)
    case.close(G, case.problem.grad(case.block, X))
    scores = case.problem.scores(case.block, X) if case.model.residual == "softmax" else case.block.matvec(X)
    case.close(Z, scores)


@pytest.mark.parametrize("features", [1, 2, 7, 33, 70])
@pytest.mark.parametrize("name", ["least-squares", "softmax"])
def test_are_those_of_the_problem_with_few_and_many_features(name, features):
    case = Case(name, features)
    case.close(case.kernels.gradients(case.clients(), case.X)[1], case.problem.grad(case.block, case.X))


def test_of_no_samples_are_those_of_the_regulariser():
    case = Case("logistic", 3, sizes=(4, 4))
    A, b, w = (part[:, :0] for part in case.arrays())
    none = case.kernels.clients(np.ascontiguousarray(A), b, w, case.factors())
    case.close(case.kernels.gradients(none, case.X)[1], case.factors()[:, None] * case.X)


def test_are_products_with_the_matrix_of_second_derivatives_too():
    case = Case("least-squares", 3)
    clients = case.kernels.clients(case.block.A, 0 * case.block.b, case.block.w, 0 * case.factors())
    case.close(case.kernels.gradients(clients, case.V)[1], case.problem.hessian(case.block, case.X)(case.V))


def test_of_one_sample_with_one_feature():
    case = Case("logistic", 1, sizes=(1,))
    case.close(case.kernels.gradients(case.clients(), case.X)[1], case.problem.grad(case.block, case.X))


@every
@pytest.mark.parametrize("features", [3, 40])
def test_bits_of_a_client_depend_on_it_alone(name, features):
    case = Case(name, features, "float32")
    Z, G = case.kernels.gradients(case.clients(), case.X)
    order = [2, 0, 3, 1]
    permuted = case.kernels.gradients(case.clients(order), case.X[order])
    same(permuted[0], Z[order])
    same(permuted[1], G[order])
    alone = case.kernels.gradients(case.clients([2]), case.X[[2]])
    same(alone[0], Z[[2]])
    same(alone[1], G[[2]])
    same(case.kernels.gradients(case.clients(more=12), case.X)[1], G)
    picked = case.kernels.pick(case.clients(), np.array([3, 1]), case.factors()[[3, 1]])
    for found, expected in zip(case.kernels.gradients(picked, case.X[[3, 1]]), (Z, G), strict=True):
        same(found, expected[[3, 1]])


PLACES = {  # what is set, and whether then samples are in shared memory, and points and gradients
    "samples in global memory": ({"SHARED": 2200}, (False, True)),
    "vectors too": ({"SHARED": 256, "SUMS": 48}, (False, False)),
    "chunks of few rows": ({"SUMS": 27}, (True, True)),
    "rows that are cached": ({"SHARED": 2200, "CACHED": 700}, (False, True)),
    "more threads": ({"THREADS": 32}, (True, True)),
    "one thread": ({"THREADS": 1, "WARP": 1}, (True, True)),
}


@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("place", PLACES)
def test_bits_do_not_depend_on_where_numbers_are_kept_nor_on_threads(name, place, monkeypatch):
    case = Case(name, 33, "float32", (9, 1, 14))
    first = case.clients()
    settings, kept = PLACES[place]
    for key, value in settings.items():
        monkeypatch.setattr(layout, key, value)
    second = case.clients()
    assert (first.plan.staged, first.plan.near) == (True, True)
    assert second.plan != first.plan
    assert (second.plan.staged, second.plan.near) == kept
    gamma = np.array([0.5, 0.25], "float32")
    who = np.array([2, 0])
    for compute in (
        case.kernels.gradients,
        lambda clients, X: (case.kernels.steps(clients, X, gamma),),
        lambda clients, X: case.kernels.gradients(case.kernels.pick(clients, who, case.factors()[who]), X[who]),
    ):
        for found, expected in zip(compute(second, case.X), compute(first, case.X), strict=True):
            same(found, expected)


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_large_scores_do_not_overflow(name):
    case = Case(name)
    X = case.X * 1e4
    case.close(case.kernels.gradients(case.clients(), X)[1] / 1e4, case.problem.grad(case.block, X) / 1e4)


def test_an_infinite_model_without_regulariser_gives_no_nan_in_rows_of_zeros():
    case = Case("least-squares", 2, sizes=(2,))
    case.block.A[:] = 0
    Z, G = case.kernels.gradients(case.clients(), np.full(2, 1e308))
    assert np.isfinite(Z).all()
    assert np.isfinite(G).all()
