"""Frozen parameters, buffers and batch normalisation: what a network in torch is a function of."""

from functools import partial

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.kernels.blocks import padding_weights
from tests.helpers import torch_cases
from tests.helpers.torch_cases import C, M, N, agrees, at, by_torch, dataset, local, network, point, samples, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn


def batch_normed():
    return nn.Sequential(nn.Linear(N, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, C))


def group_normed():
    return nn.Sequential(nn.Linear(N, 5), nn.GroupNorm(1, 5), nn.ReLU(), nn.Linear(5, C))


class Backbone(nn.Module):
    """A frozen part with batch normalisation, as a pretrained one has, and a head that is trained."""

    def __init__(self, train_norm=False):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(N, 6), nn.BatchNorm1d(6), nn.Tanh())
        self.head = nn.Linear(6, C)
        self.backbone[1].running_mean += torch.arange(6)
        self.backbone[1].running_var *= 4
        self.backbone.requires_grad_(False)
        self.backbone[1].requires_grad_(train_norm)

    def forward(self, samples):
        return self.head(self.backbone(samples))


class Headed(nn.Module):
    """A linear layer behind ``before`` and before ``after``, which are functions of the module too, with buffers."""

    sparse = True  # of its own, as layers on graphs have it

    def __init__(self, before=lambda net, samples: samples, after=lambda net, scores: scores, dtype=None, **buffers):
        super().__init__()
        self.head = nn.Linear(N, C, dtype=dtype or torch.float32)
        self.before, self.after = before, after
        for name, values in buffers.items():
            self.register_buffer(name, torch.as_tensor(values), persistent=name != "order")  # and one of each kind

    def forward(self, samples):
        return self.after(self, self.head(self.before(self, samples)))


def to(dtype):
    return lambda net, numbers: numbers.to(dtype)


def count(net, samples):
    net.calls += 1
    return samples


def count_anew(net, samples):
    net.calls = net.calls + 1
    return samples


def all_frozen():
    return Headed().requires_grad_(False)


def shift(net, samples):
    return (samples - net.mean)[:, net.order]


complex_numbers = partial(Headed, to(torch.complex64), lambda net, scores: scores.abs(), torch.complex64)
single_precision = partial(Headed, to(torch.float32))  # whatever the study computes in
double_precision = partial(Headed, lambda net, samples: samples @ torch.eye(N), dtype=torch.float64)
half_precision = partial(
    Headed, lambda net, samples: samples.to(net.head.weight.dtype), to(torch.float64), torch.bfloat16
)
more_than_scores = partial(Headed, after=lambda net, scores: {"logits": scores})
auxiliary = partial(Headed, after=lambda net, scores: (scores, scores) if net.training else scores)
shifted = partial(Headed, shift, mean=[0.5] * N, order=range(N - 1, -1, -1))  # numbers and whole numbers
counting, counting_anew = (partial(Headed, before, calls=0.0) for before in (count, count_anew))


def words(sparse=False):
    return nn.Sequential(nn.Embedding(20, 4, sparse=sparse), nn.Flatten(), nn.Linear(4 * N, C))


class Tied(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(N, N), nn.ReLU(), nn.Linear(N, N), nn.Linear(N, C))
        self[2].weight = self[0].weight


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, C)

    def forward(self, samples):
        return self.head(self.cell(samples[..., None])[0][:, -1])


def own(name, **options):
    return network(f"{__name__}:{name}", **options)


@pytest.fixture
def normed():
    """f of all clients, and a point for each."""
    f = local(own("batch_normed"), dataset())
    return f, point(f, (M,))


def test_batch_normalisation_uses_the_statistics_of_all_samples_of_the_client(normed):
    f, X = normed
    agrees(f, X, batch_normed().train())
    assert f.grad(X).tobytes() == f.value_grad(X)[1].tobytes()


def test_in_a_step_they_are_those_of_the_mini_batch(normed):
    f, X = normed
    picks = np.random.default_rng(2).integers(0, 9, (M, 4))
    part = f.block.batch(picks, padding_weights(np.array([4, 3, 2, 0]), 4, np.float64))
    gradients = f.problem.grad(part, X)
    for i in range(3):
        A, b = (rows[picks[i, : 4 - i]] for rows in samples(dataset(), i))
        assert np.allclose(gradients[i], by_torch(at(batch_normed(), X[i]).train(), A, b)[1], rtol=1e-9, atol=1e-12)
    assert not gradients[3].any()


def test_test_samples_are_normalised_as_the_training_samples_of_their_client(normed):
    """With mean and variance of those; a client without test samples is left out."""
    f, X = normed
    shares, _, tested = f.accuracy(X)
    assert tested.tolist() == [0, 1, 2, 3]
    assert shares[0] == 0
    for i in range(1, M):
        module = at(batch_normed(), X[i])
        A = torch.tensor(samples(dataset(), i)[0])
        with torch.no_grad():
            var, mean = torch.var_mean(module[0](A), 0, correction=0)
        module[1].running_mean, module[1].running_var = mean, var
        A, b = samples(dataset(), i, test=True)
        found = module.eval()(torch.tensor(A)).argmax(1).numpy()
        assert shares[i] == np.mean(found == b)


def test_nothing_is_remembered_from_one_call_to_the_next_and_a_client_is_normalised_in_one_piece(normed, monkeypatch):
    f, X = normed
    first = [part.tobytes() for part in (*f.evaluate(X), f.grad(X))]
    f.accuracy(X + 1)
    f.grad(X[0])
    assert [part.tobytes() for part in (*f.evaluate(X), f.grad(X))] == first
    whole = f.value_grad(X)
    monkeypatch.setattr("mpifed.networks.torch_network.PIECE_BYTES", 3 * N * 8)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(whole, f.value_grad(X), strict=True))


def test_a_client_of_one_sample_is_refused_where_one_cannot_be_normalised():
    data = dataset(sizes=[9, 1, 10, 11])
    with pytest.raises(
        ValueError, match=r"^client 1 has one sample, .*: raise data.partition.least_samples .*GroupNorm"
    ):
        own("batch_normed").initial(data, 0)
    assert len(own("shifted").initial(data, 0)) == C * (N + 1)
    assert len(own("group_normed").initial(data, 0)) == 5 * (N + 1 + 2) + C * 6


def test_a_mini_batch_of_one_sample_is_refused_in_one_sentence(tmp_path):
    problem = {"name": "torch", "module": f"{__name__}:batch_normed"}
    study = {"problem": problem, "data": torch_cases.tables(tmp_path), "rounds": 1}
    algorithm = {"name": "fedavg", "epochs": 1, "batch_size": 4}  # the first client has 9 samples
    with pytest.raises(
        UserError, match=r'one sample of a client: .*; write last_batch = "merge", .* above 1, or batch_size = 0, with'
    ):
        package.run(study | {"algorithm": algorithm, "selection": "all"})
    for advised in ({"last_batch": "merge"}, {"batch_size": 0}):
        assert package.run(study | {"algorithm": algorithm | advised, "selection": "all"}).cr == 1


@pytest.mark.parametrize("seed", [0, *map(slow, range(1, 20))])
def test_clients_of_any_two_or_more_samples_are_normalised_with_merged_mini_batches(seed):
    """With last_batch = "keep" 14 of these 20 runs are refused."""
    y = np.arange(3000) % C
    partition = {"name": "dirichlet", "alpha": 0.5, "least_samples": 2}
    X = np.random.default_rng(0).standard_normal((3000, N)) + y[:, None]
    data = package.arrays(X, y, 100, partition=partition)
    algorithm = {"name": "fedavg", "epochs": 1, "batch_size": 8 << seed % 5, "last_batch": "merge", "step": 0.05}
    study = {"problem": {"name": "torch", "module": f"{__name__}:batch_normed"}, "selection": "all", "rounds": 1}
    assert package.run(study, data=data, algorithm=algorithm, seed=seed).cr == 1


def frozen_at_zero(make):
    """The module; what is frozen and random has the seed 0, so that f is the same function for every seed."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def test_frozen_parameters_are_constants_and_trained_normalisation_behind_them_uses_the_samples():
    data, problem = dataset(), own("Backbone")
    f = local(problem, data)
    assert f.n == C * 7
    starts = [problem.initial(data, seed) for seed in (0, 1)]
    assert starts[0].tobytes() != starts[1].tobytes()
    agrees(f, point(f), frozen_at_zero(Backbone).eval())
    # frozen normalisation keeps its running statistics in steps too
    assert f.grad(point(f)).tobytes() == f.value_grad(point(f))[1].tobytes()
    f = local(own("Backbone", arguments={"train_norm": True}), dataset())
    assert f.n == C * 7 + 12
    agrees(f, point(f), frozen_at_zero(lambda: Backbone(train_norm=True)).train())


@pytest.mark.parametrize(
    ("name", "n"), [("shifted", C * 8), ("Tied", N * N + 2 * N + C * 8), ("Recurrent", 112 + C * 5)]
)
def test_constant_buffers_shared_weights_and_recurrent_layers_work(name, n):
    f = local(own(name), dataset())
    assert f.n == n
    agrees(f, 0.3 * point(f), globals()[name]())
    assert np.allclose(f.grad(0.3 * point(f)), f.value_grad(0.3 * point(f))[1], rtol=1e-9, atol=1e-12)


def test_parameters_in_half_precision_are_computed_in_that_of_the_study_and_samples_may_be_whole_numbers():
    f = local(own("half_precision"), dataset())
    assert f.grad(np.zeros(f.n)).dtype == np.float64
    assert np.allclose(f.value(np.zeros(f.n)), np.log(C))
    data = dataset()
    data.train.X[:] = np.random.default_rng(5).integers(0, 20, data.train.X.shape)
    f = local(own("words", integers=True), data)
    A, b = samples(data, 1)
    assert np.isclose(f.value(point(f))[1], by_torch(at(words(), point(f)), A.astype(int), b)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("counting", {}, "must not change its buffers in a call, but it changes calls: f_i would depend on the order"),
        ("counting_anew", {}, "must not change its buffers in a call, but it changes calls"),
        ("complex_numbers", {}, "of one vector of real numbers, but its parameter head.weight is complex, head.bias"),
        ("words", {"integers": True, "arguments": {"sparse": True}}, "0.weight has sparse gradients .write sparse="),
        ("words", {}, "does not take samples of shape .7.: .*; write problem.integers = true where they are whole num"),
        ("more_than_scores", {}, "the network returns a dict: it must return the scores alone, a tensor$"),
        ("auxiliary", {}, "the network returns a tuple in training mode: it must return the scores alone, a tensor$"),
        ("all_frozen", {}, "the network has no parameter that is trained$"),
    ],
)
def test_what_is_no_function_of_real_parameters_says_why(name, options, sentence):
    with pytest.raises((UserError, ValueError), match=sentence) as refused:
        own(name, **options).initial(dataset(), 0)
    assert "\n" not in str(refused.value)


@pytest.fixture
def double():
    """As a user's file may set it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["batch_normed", slow("Recurrent"), "lazy"])
def test_the_default_dtype_of_torch_may_be_float64(name, double):
    f = local(own(name), dataset())
    agrees(f, point(f), frozen_at_zero(lambda: at_once(globals()[name]())).train())


def test_a_run_may_have_the_default_dtype_float64_in_either_precision(double, tmp_path):
    study = {"problem": {"name": "torch", "module": f"{__name__}:lazy"}, "data": torch_cases.tables(tmp_path)}
    algorithm = {"name": "fedavg", "k0": 2, "step": {"name": "constant", "a": 0.05}}
    for dtype in ("float64", "float32"):
        result = package.run(study | {"algorithm": algorithm, "dtype": dtype, "rounds": 2, "selection": "all"})
        scores = result.module()(torch.tensor(samples(dataset(), 1)[0]).to(getattr(torch, dtype)))
        assert scores.isfinite().all()
        assert result.rounds["objective"][-1] < result.rounds["objective"][0]


def lazy():
    return nn.Sequential(nn.LazyLinear(5), nn.Tanh(), nn.Linear(5, C))


def at_once(module):
    module(torch.zeros(2, N))  # sizes of lazy layers
    return module


def test_a_module_with_numbers_in_double_precision_is_told_where_to_set_it(double):
    with pytest.raises(UserError, match='; write dtype = "float64" at the top of the study'):
        local(own("double_precision"), dataset(dtype="float32")).value(np.zeros(C * (N + 1), np.float32))
    assert local(own("double_precision"), dataset()).value(np.zeros(C * (N + 1))).dtype == np.float64


def test_a_module_that_computes_in_single_precision_is_told_where_to_set_it():
    with pytest.raises(UserError, match='; write dtype = "float32" at the top of the study'):
        local(own("single_precision"), dataset()).value(np.zeros(C * (N + 1)))
    f = local(own("single_precision"), dataset(dtype="float32"))
    assert f.value(np.zeros(f.n, np.float32)).dtype == np.float32
