"""Weight decay of weights alone, and not of biases and norms."""

import numpy as np
import pytest
from msgspec.structs import replace

from mpifed import UserError, run
from mpifed.algorithms.parts.optimizers import Adam, AdamW, Momentum, clip_gradients
from mpifed.extend import Problem
from tests.helpers.algorithm_runs import SOURCES, N

A, LAMBDA = 0.01, 0.5
DATA = {"name": "synthetic", "clients": 4, "features": 5, "classes": 3, "least": 6, "most": 25}


@pytest.mark.torch
@pytest.mark.parametrize(
    "rule", [kind(weight_decay=0.2, decay="weights", clip=0.5) for kind in (Momentum, Adam, AdamW)], ids=repr
)
def test_single_precision_stays_and_tensors_get_the_same_decay_and_clipping(rule):
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    rule = replace(rule, weight_decay=(0.2 * (np.arange(6) < 3)).astype(np.float32))
    w, g = np.random.default_rng(0).standard_normal((2, 4, 6)).astype(np.float32)
    assert rule.step(w, g, 0.1, None)[0].dtype == np.float32
    pairs = [
        (rule.shrink(torch.from_numpy(w)), rule.shrink(w)),
        (clip_gradients(torch.from_numpy(g), 0.5), clip_gradients(g, 0.5)),
    ]
    for shrunk, wanted in pairs:
        assert np.allclose(shrunk.numpy(), wanted, rtol=1e-6)
        assert shrunk.dtype == torch.float32


def started(problem, **optimizer):
    """Models after rounds 0 and 1 of FedAvg with one step."""
    optimizer = {"name": "momentum", "weight_decay": LAMBDA} | optimizer
    algorithm = {"name": "fedavg", "k0": 1, "step": A, "optimizer": optimizer}
    study = {"data": DATA, "problem": problem, "algorithm": algorithm, "selection": "all", "rounds": 1}
    return run(study, {"record.models": 1}, progress=False).models["x"]


LINEAR = {"name": "torch", "module": "torch.nn:Linear", "arguments": {"in_features": 5, "out_features": 3}}
PROBLEMS = {
    "softmax": ({"name": "softmax", "start": "uniform"}, np.arange(18) < 15),
    "softmax, no bias": ({"name": "softmax", "start": "uniform", "bias": False}, np.arange(15) < 15),
    "mlp": ({"name": "mlp", "hidden": [2]}, np.repeat([True, False, True, False], [10, 2, 6, 3])),
    "torch": (LINEAR, np.arange(18) < 15),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.torch] * (n == "torch")) for n in PROBLEMS])
def test_a_problem_knows_its_weights(name):
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    problem, weights = PROBLEMS[name]
    start, decayed = started(problem, decay="weights")
    plain = started(problem, weight_decay=0.0)[1]
    assert np.allclose(plain - decayed, A * LAMBDA * start * weights, rtol=1e-9, atol=1e-15)
    assert np.allclose(plain - started(problem)[1], A * LAMBDA * start, rtol=1e-9, atol=1e-15)


def test_linear_models_without_a_bias_decay_whole():
    data = SOURCES["least-squares"].load(0, "float64")
    assert Problem.build("least-squares", "problem").decay_mask(data).all()


@pytest.mark.parametrize("bias", [True, False])
def test_the_bias_of_a_regression_does_not_decay(bias):
    problem = Problem.build({"name": "huber", "bias": bias}, "problem")
    data = problem.fit_labels(SOURCES["least-squares"].load(0, "float64"))
    assert problem.decay_mask(data).tolist() == [True] * N + [False] * bias


class Wrong(Problem):
    """f_i = ‖x‖²/2, with a mask that is none."""

    def value_grad(self, block, X):
        X = X * np.ones((len(block), 1))
        return (X * X).sum(axis=1) / 2, X

    def decay_mask(self, data):
        return np.arange(data.n)


def test_a_problem_of_ones_own_that_does_not_tell_which_is_refused():
    with pytest.raises(
        UserError, match=r"^decays of .*Wrong returns int64 \(5,\): it says of each of the 5 parameters"
    ):
        started(Wrong(), decay="weights")
