"""Networks of PyTorch: against mpifed's own network, by finite differences, with dropout, on ranks."""

import sys

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.features.network_training import Dropout
from mpifed.kernels.blocks import padding_weights
from mpifed.networks.mlp import MLP
from mpifed.problems.problem import Problem
from tests.helpers.torch_cases import C, M, N, dataset, local, torch
from tests.helpers.torch_cases import network as built
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn


class Net(nn.Sequential):
    """features – hidden – C, the parameters in the order of mpifed's mlp."""

    def __init__(self, hidden=5, dropout=0.0):
        super().__init__(nn.Linear(N, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, C))


class Thinned(nn.Module):
    """Its gradient at one sample is zero where dropout struck."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(64))

    def forward(self, samples):
        kept = nn.functional.dropout(torch.ones(len(samples), 64, dtype=samples.dtype), 0.5, self.training)
        score = kept @ self.scale.to(samples.dtype)
        return torch.stack([score, 2 * score, 4 * score], 1)


INSTANCE = nn.Linear(48, 6)


def network(name="Net", lam=0.0, **arguments):
    return built(f"{__name__}:{name}", lam=lam, arguments=arguments)


def images(size, channels=1):
    table = {"name": "images", "clients": 2, "samples": 6, "size": size, "channels": channels, "test": 0.0}
    return Data.build(table, "data").load(0, "float64")


def block_of(kind):
    return local(network(), dataset(kind=kind)).block


@pytest.fixture
def X():
    return np.random.default_rng(3).standard_normal((M, 5 * (N + 1) + C * 6))


@pytest.mark.parametrize(("kind", "batch"), [("dense", False), ("csr", True), slow("dense", True), slow("csr", False)])
def test_a_network_is_the_mlp_of_the_same_parameters(kind, batch, X):
    block = block_of(kind)
    if batch:  # of 4 samples, of which the clients have 4, 3, 2 and 0
        picks = np.random.default_rng(2).integers(0, 9, (M, 4))
        block = block.batch(picks, padding_weights(np.array([4, 3, 2, 0]), 4, np.float64))
    ours, theirs = MLP(hidden=(5,), lam=0.3), network(lam=0.3)
    for x in (X, X[0]):
        for mine, torchs in zip(ours.value_grad(block, x), theirs.value_grad(block, x), strict=True):
            assert np.allclose(mine, torchs, rtol=1e-10, atol=1e-10)
        assert np.allclose(ours.grad(block, x), theirs.grad(block, x), rtol=1e-10, atol=1e-10)
        assert theirs.value(block, x).tobytes() == theirs.value_grad(block, x)[0].tobytes()
        separately = (*theirs.value_grad(block, x), theirs.predict(block, x))
        for a, b in zip(theirs.evaluate(block, x), separately, strict=True):
            assert a.tobytes() == b.tobytes()
        assert np.array_equal(ours.predict(block, x)[block.w > 0], theirs.predict(block, x)[block.w > 0])
    assert not theirs.predict(block, 0 * X).any(), "a tie goes to the lowest class"


def test_single_precision_stays_single_and_the_inputs_stay_as_they_are(X):
    block, x = local(network(), dataset(dtype="float32")).block, X.astype(np.float32)
    for array in (x, block.A, block.b, block.w):
        array.setflags(write=False)
    value, grad = network(lam=0.3).value_grad(block, x)
    assert value.dtype == grad.dtype == network().grad(block, x).dtype == network().value(block, x).dtype == np.float32
    assert np.allclose(grad, network(lam=0.3).value_grad(local(network(), dataset()).block, X)[1], atol=1e-5)


@pytest.mark.parametrize("kind", ["dense", slow("csr")])
def test_dropout_is_in_steps_and_not_in_what_is_measured(kind, X):
    block = block_of(kind)
    with_dropout, without = network(dropout=0.4), network()
    for a, b in zip(with_dropout.value_grad(block, X), without.value_grad(block, X), strict=True):
        assert a.tobytes() == b.tobytes()
    assert not np.allclose(with_dropout.grad(block, X), without.grad(block, X))
    assert with_dropout.grad(block, X).tobytes() == with_dropout.grad(block, X).tobytes()


def test_dropout_draws_anew_for_every_client_and_step_and_not_for_every_point():
    f = local(network("Thinned"), dataset(), [Dropout(0)])

    def struck(batch, x):
        return [mask.tobytes() for mask in batch.grad(np.full(64, x)) == 0]

    masks = []
    for _, batch, _ in f.steps(3, 0, 1):
        masks += struck(batch, 0.0)
        assert struck(batch, 1.0) == masks[-M:]
    assert len(set(masks)) == 3 * M
    assert all(10 < sum(mask) < 54 for mask in masks)


def test_the_start_comes_from_the_seed_and_leaves_the_random_numbers_of_torch_alone():
    data, problem = dataset(), network()
    before = torch.random.get_rng_state()
    starts = [problem.initial(data, seed) for seed in (0, 0, 1)]
    assert torch.equal(before, torch.random.get_rng_state())
    assert len(starts[0]) == problem.dim(data) == MLP(hidden=(5,)).dim(data)
    assert starts[0].tobytes() == starts[1].tobytes() != starts[2].tobytes()
    assert 0.1 < np.abs(starts[0][: 5 * N]).max() <= 1 / np.sqrt(N)  # nn.Linear: uniform in ±1/√in


def test_the_cnn_has_206678_parameters_for_six_classes_of_pictures_and_its_gradient_is_that_of_its_value():
    cnn = Problem.build({"name": "cnn", "dropout": 0.0, "lam": 0.1}, "problem")
    assert cnn.dim(images(64, channels=3)) == 206_678
    assert cnn.sample_shape(3 * 64 * 64) == (3, 64, 64)
    assert cnn.sample_shape(28 * 28) == (1, 28, 28)
    f, x = local(cnn, images(12)), cnn.initial(images(12), 0)
    grad = f.value_grad(x)[1]
    assert grad.tobytes() == f.grad(x).tobytes()
    for v in np.random.default_rng(4).standard_normal((4, len(x))):
        difference = (f.value(x + 1e-6 * v) - f.value(x - 1e-6 * v)) / 2e-6
        assert np.allclose(grad @ v, difference, rtol=1e-6, atol=1e-7)


def experiment(problem, **data):
    return {"data": {"name": "images", "size": 4, "clients": 2} | data, "problem": problem, "algorithm": "fedavg"}


REFUSED = {
    "nowhere:Net": r'^problem.module = "nowhere:Net" is wrong: nowhere cannot be imported: ModuleNotFoundError',
    "torch.nn:Nothing": "torch.nn has no class or function Nothing;",
    "torch.nn:functional": "torch.nn has no class or function functional;",
    "json:JSONDecoder": "JSONDecoder of json is not derived from torch.nn.Module",
    "torch.nn:Linear": r"torch.nn:Linear\" is wrong: arguments = {} cannot be used: TypeError",
    "os:getpid": "getpid of os returns no torch.nn.Module, but a int$",
    f"{__name__}:INSTANCE": "INSTANCE of tests.networks.test_torch_module is an instance of Linear: name the class, or",
    f"{__name__}:Net": r"does not take samples of shape \[48\]: RuntimeError",
    "torch.nn:Flatten": r"gives an array \[2, 48\]: it must be \[2, 6\]",
    "nets.py": r'^problem.module = "nets.py" is wrong: write path.py:Class or package.module:Class$',
    "/nowhere/nets.py:Net": "is wrong: there is no file /nowhere/nets.py$",
    "os.system('true'):Net": "is wrong: write path.py:Class or package.module:Class$",
}
WRONG = "^problem 'cnn' cannot use these data: "


@pytest.mark.parametrize(
    ("problem", "size", "sentence"),
    [
        *(({"name": "torch", "module": module}, 4, told) for module, told in REFUSED.items()),
        ({"name": "cnn", "shape": [3, 5, 5]}, 4, WRONG + r"samples have 48 features, but shape = \[3, 5, 5\] needs 75"),
        ({"name": "cnn"}, 4, WRONG + r"samples of shape \[3, 4, 4\] are no images of at least 10×10 pixels; write"),
        ({"name": "cnn", "shape": [432]}, 12, WRONG + r"samples of shape \[432\] .* write shape = \[channels, height"),
    ],
)
def test_what_is_no_network_for_these_data_is_refused_before_round_one(problem, size, sentence):
    with pytest.raises(UserError, match=sentence) as refused:
        package.run(experiment(problem, size=size))
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UserError, match=r'^problem.device = "cuda" is wrong: PyTorch finds no GPU'):
        Problem.build({"name": "cnn", "device": "cuda"}, "problem").initial(images(12), 0)
    assert len(Problem.build({"name": "cnn", "device": "auto"}, "problem").initial(images(12), 0))


def test_without_torch_the_problem_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r"needs PyTorch .*: pip install mpifed\[torch\]$"):
        Problem.build("cnn", "problem").dim(images(12))
