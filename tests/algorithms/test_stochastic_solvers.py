"""Local solvers on mini-batches: against loops written out, one client, one sample and one step at a time."""

import math

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms.parts.local_solvers import SVRG, AdamSolver, SGDSolver
from mpifed.extend import Pool, stream
from mpifed.problems.softmax import Softmax
from tests.federation.test_mini_batches import cut
from tests.helpers.algorithm_runs import build, local

LAM = 0.05
CLASSES = 3
SEED = 4
PLACE = (2, 1)
PROBLEM = Softmax(lam=LAM, bias=False)
SIZES = [9, 12, 10, 11]


def clients():
    """Clients of one padded size and, at random, y_i and models."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((sum(SIZES), 5)), rng.integers(0, CLASSES, sum(SIZES)).astype(float)
    f = local(Pool(A, b, None, np.array(SIZES)), PROBLEM, place=PLACE, seed=SEED)
    Y, W = 0.1 * rng.standard_normal((2, len(SIZES), f.n))
    cuts = np.cumsum(SIZES)[:-1]
    return f, Y, W, np.split(A, cuts), np.split(b, cuts)


def gradient(A, b, w):
    """∇ of the mean cross-entropy of some samples + (λ/2)‖w‖²."""
    V = w.reshape(CLASSES, -1)
    total = LAM * V
    for a, label in zip(A, b, strict=True):
        p = np.exp(V @ a) / np.exp(V @ a).sum()
        p[int(label)] -= 1
        total = total + np.outer(p, a) / len(A)
    return total.ravel()


def batches(rng, d, epochs, steps, size, last):
    """Epoch or step, and the sample numbers of every mini-batch, as the client's stream gives them."""
    for j in range(steps or math.ceil(epochs)):
        order = rng.permutation(d) if size else np.arange(d)
        width = size or d
        own = [order[:width]] if steps else cut(order, width, last)
        for rows in own[: math.ceil(min(1, steps or epochs - j) * len(own))]:
            yield j, rows


def written_out(solver, A, b, y, w, rng):
    """What the solver does for one client."""
    mean = squares = np.zeros_like(w)
    epoch, steps = -1, getattr(solver, "steps", None)
    for t, (j, own) in enumerate(batches(rng, len(A), solver.epochs, steps, solver.batch_size, solver.last_batch), 1):
        g = gradient(A[own], b[own], w) - y
        if isinstance(solver, SVRG):
            if j > epoch:
                epoch, v = j, w
            g = g - (gradient(A[own], b[own], v) - y) + gradient(A, b, v) - y
        if isinstance(solver, AdamSolver):
            mean = solver.beta1 * mean + (1 - solver.beta1) * g
            squares = solver.beta2 * squares + (1 - solver.beta2) * g**2
            g = mean / (1 - solver.beta1**t) / (np.sqrt(squares / (1 - solver.beta2**t)) + solver.eps)
        w = w - solver.lr * g
    return w


SOLVERS = [
    SGDSolver(),
    SGDSolver(lr=0.3, epochs=2, batch_size=4),
    SGDSolver(lr=0.2, steps=7, batch_size=3),
    SGDSolver(epochs=3, batch_size=0),
    SGDSolver(epochs=2.5, batch_size=4, last_batch="merge"),
    SVRG(),
    SVRG(lr=0.3, epochs=3, batch_size=4),
    SVRG(lr=0.2, epochs=2, batch_size=1),
    SVRG(lr=0.2, epochs=1.5, batch_size=4, last_batch="drop"),
    AdamSolver(),
    AdamSolver(lr=0.05, epochs=2, batch_size=4),
    AdamSolver(lr=0.02, steps=9, batch_size=5, beta1=0.5, beta2=0.9, eps=1e-3),
]
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


@solvers
def test_a_solver_is_its_loop(solver):
    f, Y, W, A, b = clients()
    found = solver.minimise(f, Y, W, LAM, 1.0, 0.5)
    for i in range(len(SIZES)):
        wanted = written_out(solver, A[i], b[i], Y[i], W[i], stream(SEED, "clients", i, *PLACE))
        assert np.allclose(found[i], wanted, rtol=1e-11, atol=1e-13), i


@pytest.mark.parametrize(
    ("table", "gradients"),
    [
        ({"name": "sgd", "epochs": 3}, [27, 36]),
        ({"name": "sgd", "steps": 4, "batch_size": 10}, [36, 40]),
        ({"name": "svrg", "epochs": 2}, [54, 72]),
        ({"name": "svrg", "epochs": 1.5, "batch_size": 4, "last_batch": "drop"}, [18 + 2 * 12, 24 + 2 * 20]),
        ({"name": "adam"}, [180, 240]),
        ({"name": "adam", "steps": 4}, [36, 48]),
    ],
    ids=str,
)
def test_a_solver_knows_its_work(table, gradients):
    """Sample gradients of clients with 9 and 12 samples; an epoch of SVRG takes three passes."""
    assert build("feddcd", {"solver": table}).sample_gradients(np.array([9, 12])).tolist() == gradients


@pytest.mark.parametrize("name", ["sgd", "svrg"])
def test_mini_batches_of_functions_without_samples_are_refused(name):
    table = {"data": {"name": "quadratic", "clients": 5, "features": 3}, "rounds": 2}
    with pytest.raises(UserError, match=r"^algorithm\.solver\.batch_size = 10 is wrong: quadratic has no mini-batches"):
        mpifed.run(table, algorithm={"name": "feddcd", "solver": name})
    whole = {"name": name, "batch_size": 0}
    assert len(mpifed.run(table, algorithm={"name": "feddcd", "solver": whole}).rounds["objective"]) == 3


@pytest.mark.parametrize("solver", ["sgd", "adam", "svrg"])
def test_mini_batches_of_all_samples_are_the_full_batch_also_with_a_penalty(solver):
    """AD-ADMM adds (ρ/2)‖x‖² to f_i, which mini-batches have to have too."""
    models = []
    for size in (0, 40):
        table = {"name": "ad-admm", "solver": {"name": solver, "lr": 0.02, "epochs": 4, "batch_size": size}}
        data = {"name": "gaussian", "clients": 4, "samples": 40, "features": 3}
        models.append(mpifed.run({"problem": "least-squares", "rounds": 3}, data=data, algorithm=table).x)
    np.testing.assert_allclose(models[1], models[0], rtol=1e-10)
