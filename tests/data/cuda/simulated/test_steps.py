"""Local steps of all clients in one launch."""

from functools import partial

import numpy as np
import pytest

from tests.data.cuda.simulated.cases import Case

same = partial(np.testing.assert_array_equal, strict=True)
every = pytest.mark.parametrize("name", ["least-squares", "nonconvex-logistic", "softmax"])


def loop(case, X, gamma, correction=0, pull=0, anchor=0):
    """The same steps, each with a gradient of its own and numpy's arithmetic."""
    clients = case.clients()
    w = np.broadcast_to(X, case.X.shape).copy()
    for g in np.broadcast_to(gamma, (len(w), np.shape(gamma)[-1])).T:
        G = case.kernels.gradients(clients, w)[1] + correction
        w = w - g[:, None] * (G + pull * (w - anchor))
    return w


@every
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_have_the_bits_of_single_gradients_and_steps_in_numpy(name, dtype):
    case = Case(name, 3, dtype)
    gamma = np.array([0.5, 0.3, 0.1], dtype)
    same(case.kernels.steps(case.clients(), case.X[0], gamma), loop(case, case.X[0], gamma))


def test_are_those_of_the_problem_up_to_rounding():
    case = Case("logistic")
    w = case.X
    for gamma in (0.5, 0.3):
        w = w - gamma * case.problem.grad(case.block, w)
    case.close(case.kernels.steps(case.clients(), case.X, np.array([0.5, 0.3])), w)


def test_clients_have_step_sizes_of_their_own_and_rest_where_these_are_0():
    case = Case("logistic", dtype="float32")
    gamma = np.array([[0.5, 0.1], [0.2, 0], [0, 0], [0, 0.3]], "float32")
    found = case.kernels.steps(case.clients(), case.X, gamma)
    same(found, loop(case, case.X, gamma))
    same(found[2], case.X[2])


@pytest.mark.parametrize("own", [True, False])
def test_gradients_are_corrected(own):
    case = Case("logistic", dtype="float32")
    gamma = np.array([0.5, 0.3], "float32")
    correction = case.V if own else case.V[1]
    found = case.kernels.steps(case.clients(), case.X, gamma, correction)
    same(found, loop(case, case.X, gamma, correction))


@pytest.mark.parametrize("own", [True, False])
def test_models_are_pulled_towards_where_they_began_or_to_an_anchor(own):
    case = Case("softmax", dtype="float32")
    gamma = np.array([0.5, 0.3], "float32")
    pull = np.array([[0.2], [0], [3], [1]], "float32") if own else np.array([0.7], "float32")
    anchor = case.V if own else case.V[0]
    found = case.kernels.steps(case.clients(), case.X, gamma, case.V, pull, anchor)
    same(found, loop(case, case.X, gamma, case.V, pull, anchor))
    found = case.kernels.steps(case.clients(), case.X, gamma, pull=pull)
    same(found, loop(case, case.X, gamma, 0, pull, case.X))


def test_bits_of_a_client_depend_on_it_alone():
    case = Case("softmax", 5, "float32")
    gamma = np.array([0.5, 0.3], "float32")
    found = case.kernels.steps(case.clients(), case.X, gamma, case.V)
    for i in range(4):
        same(case.kernels.steps(case.clients([i]), case.X[[i]], gamma, case.V[[i]]), found[[i]])
    who = np.array([2, 0])
    picked = case.kernels.pick(case.clients(), who, case.factors()[who])
    same(case.kernels.steps(picked, case.X[who], gamma, case.V[who]), found[who])


def test_no_steps_leave_models_where_they_are_and_no_clients_have_none():
    case = Case("logistic")
    same(case.kernels.steps(case.clients(), case.X, np.zeros(0)), case.X)
    assert case.kernels.steps(case.clients([]), case.X[:0], np.ones(2)).shape == (0, 3)


MISTAKES = {
    "correction: the numbers must be float64, and are float32": {"correction": np.zeros(3, "float32")},
    "correction (2, 3) must be (3,) or (4, 3)": {"correction": np.zeros((2, 3))},
    "anchor: the array must be contiguous": {"pull": np.ones(1), "anchor": np.zeros((4, 6))[:, ::2]},
    "pull (4,) must be (1,) or (4, 1)": {"pull": np.ones(4)},
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_what_does_not_go_together_is_refused(sentence):
    case = Case("logistic")
    with pytest.raises(ValueError, match="^" + sentence.replace("(", r"\(").replace(")", r"\)") + "$"):
        case.kernels.steps(case.clients(), case.X, np.ones(2), **MISTAKES[sentence])


def test_clients_whose_labels_do_not_go_with_their_samples_are_refused():
    case = Case("logistic")
    A, b, w = case.arrays()
    with pytest.raises(ValueError, match=r"^b \(4, 7\) does not go with A \(4, 8, 3\)$"):
        case.kernels.clients(A, b[:, 1:], w, case.factors())


def test_more_classes_than_shared_memory_has_room_for_are_refused():
    from mpifed.data.cuda.layout import Shape, layout

    layout(Shape(4, 1, 3000, 6000), 8)
    with pytest.raises(ValueError, match="4000 classes are too many for the shared memory of a GPU"):
        layout(Shape(4, 1, 4000, 8000), 8)
