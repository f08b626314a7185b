"""Networks whose clients are computed in groups: the bits that each has alone, and the numbers of one at a time."""

import re

import numpy as np
import pytest

import mpifed as package
from mpifed.experiment.config import override
from mpifed.kernels.blocks import padding_weights
from mpifed.networks import torch_groups, torch_network, torch_problem
from tests.helpers.torch_cases import C, N, dataset, local, network, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn
SIZES = 13 + np.arange(21) % 4  # of one padded size


class Dense(nn.Sequential):
    def __init__(self, dropout=0.0):
        super().__init__(nn.Linear(N, 6), nn.ReLU(), nn.Dropout(dropout), nn.Linear(6, C))


class Convolutions(nn.Sequential):
    def __init__(self, dropout=0.0):
        super().__init__(
            nn.Unflatten(1, (1, N)), nn.Conv1d(1, 4, 3), nn.GroupNorm(2, 4), nn.Dropout1d(dropout), nn.MaxPool1d(2),
            nn.Flatten(), nn.Linear(8, C),
        )  # fmt: skip


class Neighbours(torch.autograd.Function):
    """The identity, but for the last bits of a client, which depend on its place among others."""

    @staticmethod
    def forward(values):
        return values.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient

    @staticmethod
    def vmap(info, in_dims, values):
        places = torch.arange(info.batch_size, dtype=values.dtype).view(-1, *(1,) * (values.ndim - 1))
        return values.movedim(in_dims[0], 0) * (1 + places * torch.finfo(values.dtype).eps), 0


class Variant(Dense):
    def forward(self, samples):
        return super().forward(Neighbours.apply(samples))


class Functional(Dense):
    def forward(self, samples):
        return nn.functional.dropout(super().forward(samples), 0.5, self.training)


def normed():
    return nn.Sequential(nn.Linear(N, 5), nn.BatchNorm1d(5), nn.Linear(5, C))


class Branching(Dense):
    def forward(self, samples):
        return super().forward(samples if self[0].bias.sum() > 0 else -samples)


class Twice(nn.Module):
    """Two parameters whose gradients are one tensor, one with one number for all entries, and one unused."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(N, C)
        self.second = nn.Parameter(torch.ones(C))
        self.total = nn.Parameter(torch.ones(3))
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, samples):
        return (self.first(samples) + self.second) * self.total.sum()


def mean_loss(scores, targets):
    return nn.functional.cross_entropy(scores, targets)


def own(name, **options):
    return network(f"{__name__}:{name}", **options)


def clients(problem, kind="dense", dtype="float64"):
    """f of clients of one padded size, and a point for each."""
    f = local(problem, dataset(kind=kind, dtype=dtype, sizes=SIZES))
    return f, np.random.default_rng(3).standard_normal((len(f), f.n)).astype(dtype)


def groups(problem, f):
    return problem._built(f.block.n, f.n)[1]


@pytest.mark.parametrize(
    ("name", "dtype", "kind"), [("Convolutions", "float32", "dense"), slow("Dense", "float64", "csr")]
)
def test_a_client_has_the_same_bits_alone_in_any_group_and_in_any_order(name, dtype, kind):
    problem = own(name, lam=0.3, arguments={"dropout": 0.3})
    f, X = clients(problem, kind, dtype)
    assert not groups(problem, f).first_reason(N, f.block.b.dtype)
    batch = f.block.batch(np.random.default_rng(2).integers(0, 13, (len(f), 5)), partly(len(f), 5, dtype))
    rng = np.random.default_rng(5)
    subsets = [np.array([4]), np.arange(20, -1, -1), rng.permutation(21)[:11]]
    for block in (f.block, batch):
        for compute in (problem.grad, problem.value, problem.predict, lambda b, x: problem.value_grad(b, x)[1]):
            whole = compute(block, X)
            for rows in subsets:
                part = block.take(rows)
                assert compute(part, X[rows]).tobytes() == whole[rows].tobytes()
            assert compute(block, X[3])[5].tobytes() == compute(block, np.tile(X[3], (len(f), 1)))[5].tobytes()


def partly(c, width, dtype):
    """Weights of mini-batches of which some have fewer samples than others, and one none."""
    return padding_weights(np.arange(c) % (width + 1), width, dtype)


@pytest.mark.parametrize("name", ["Convolutions", slow("Dense")])
def test_groups_give_the_numbers_and_the_masks_of_one_client_at_a_time(name, monkeypatch):
    monkeypatch.setattr(torch_network, "PIECE_BYTES", 16 * 8 * N * 8)  # 8 samples of a client at a time
    arguments = {"dropout": 0.4}
    problem, alone = (own(name, lam=0.3, arguments=arguments, batched=wish) for wish in ("auto", False))
    f, X = clients(problem)
    assert groups(alone, f).reason == "problem.batched is false"
    assert alone.group(N) == 1 < problem.group(N)
    batch = f.block.batch(np.random.default_rng(2).integers(0, 13, (len(f), 5)), partly(len(f), 5, "float64"))
    for block in (f.block, batch):
        assert np.allclose(problem.grad(block, X), alone.grad(block, X), rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(problem.evaluate(block, X), alone.evaluate(block, X), strict=True):
            assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        used = block.w > 0
        assert np.array_equal(problem.predict(block, X)[used], alone.predict(block, X)[used])


@pytest.mark.parametrize(
    ("name", "loss", "reason"),
    [
        ("Variant", "cross-entropy", "the last bits of a client depend on its place in a group"),
        ("Functional", "cross-entropy", "torch.func.vmap cannot compute the network: UserError: .* random"),
        ("Branching", "cross-entropy", "torch.func.vmap cannot compute the network: .*data-dependent control flow"),
        ("normed", "cross-entropy", "batch normalisation makes the loss of a sample depend on the others"),
        ("Dense", f"{__name__}:mean_loss", "the loss is a mean over the samples of a mini-batch"),
    ],
)
def test_what_cannot_be_in_groups_is_computed_one_client_at_a_time_and_says_why(name, loss, reason):
    problem, alone = (own(name, loss=loss, batched=wish) for wish in ("auto", False))
    f, X = clients(problem)
    table = problem.run_attributes(N, X[0])
    assert table["group"] == 1
    assert re.match(reason, table["group_reason"])
    assert problem.grad(f.block, X).tobytes() == alone.grad(f.block, X).tobytes()
    assert np.allclose(problem.value(f.block, X), alone.value(f.block, X), rtol=1e-12)


@pytest.mark.parametrize("name", ["Twice", "Convolutions"])
@pytest.mark.parametrize("batched", ["auto", False])
def test_a_step_is_the_model_minus_a_multiple_of_the_gradient_to_the_last_bit(name, batched):
    problem = own(name, lam=0.3, batched=batched)
    f, X = clients(problem)
    seeds = np.arange(len(f))
    rates = np.linspace(0, 1, len(f))[:, None]
    for x, rate in ((X, 0.1), (X, rates), (X[0], 0.1), (X[0], rates)):
        expected = x - rate * problem.seeded_grad(f.block, x, seeds)
        assert problem.seeded_descent(f.block, x, rate, seeds).tobytes() == expected.tobytes()


def test_gradients_are_those_of_one_client_at_a_time_where_parameters_share_them():
    problem, alone = (own("Twice", batched=wish) for wish in ("auto", False))
    f, X = clients(problem)
    assert not groups(problem, f).first_reason(N, f.block.b.dtype)
    assert np.allclose(problem.grad(f.block, X), alone.grad(f.block, X), rtol=1e-12, atol=1e-14)


TIMES = {  # milliseconds of a client in groups of sizes, and alone
    "half a group": (
        {16: 3, 8: 2, 4: 2.5}, 4, 8,
        "3 ms in a group of 16, 2 ms in a group of 8, 4 ms alone; local steps take 8 at a time",
    ),
    "little is gained": ({16: 3, 8: 2.9}, 4, 16, "3 ms in a group of 16, 4 ms alone"),
    "alone": (
        {16: 3, 4: 2}, 1, 4,
        "3 ms in a group of 16, 2 ms in a group of 4, 1 ms alone (problem.batched = false, other last bits); "
        "local steps take 4 at a time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_groups_have_the_size_that_takes_the_least_time_and_no_bit_depends_on_it(name, monkeypatch):
    grouped, alone, size, told = TIMES[name]
    usual = own("Dense", lam=0.2)
    f, X = clients(usual)
    batch = f.block.batch(np.zeros((len(f), 5), int), np.full((len(f), 5), 0.2))
    expected = usual.grad(batch, X)
    times = torch_groups.PassSeconds({k: part / 1e3 for k, part in grouped.items()}, alone / 1e3)
    monkeypatch.setattr(torch_groups.GroupRehearsal, "_measure", lambda self, form: times)
    torch_problem.NETWORKS.clear()
    problem = own("Dense", lam=0.2)
    table = problem.run_attributes(N, X[0])
    built = groups(problem, f)
    assert max(map(len, built.groups_of(len(f), built.first_forms(N, X.dtype)[:1]))) == size
    assert table["group"] == 16  # a resumed run may choose another of the sizes with the same bits
    assert table["group_reason"].endswith(f"a gradient of 8 samples takes {told}")
    assert problem.grad(batch, X).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("name", "grouped"), [("Dense", True), ("Variant", False)])
def test_sizes_that_give_the_same_bits_are_timed_where_there_are_groups(name, grouped):
    problem = own(name)
    f, X = clients(problem)
    problem.run_attributes(N, X[0])
    rehearsal = groups(problem, f).rehearsal
    assert bool(rehearsal.seconds) == grouped
    for form, seconds in rehearsal.seconds.items():
        assert {16} <= set(seconds.grouped) <= {16, 8, 4}
        assert all(rehearsal.fits(form, size) for size in seconds.grouped)
        assert min(seconds.alone, *seconds.grouped.values()) > 0


class Unit(Dense):
    """It divides by the norm of a sample, and has no gradient at zeros."""

    def forward(self, samples):
        return super().forward(samples / samples.norm(dim=1, keepdim=True))


def test_padding_is_no_sample():
    f, X = clients(own("Unit"))
    assert np.isfinite(f.problem.value_grad(f.block, X)[1]).all()


METHODS = {
    "Adam": "algorithm=fedavg algorithm.optimizer=adam algorithm.step=constant algorithm.step.a=0.003",
    "FLAME": "algorithm=flame algorithm.lr=0.05",
}


@pytest.mark.parametrize("name", ["Adam", slow("FLAME")])
def test_a_run_in_groups_is_the_run_of_one_client_at_a_time_to_rounding(name):
    """With dropout, whose masks are the same in both."""
    table = {
        "data": {"name": "images", "clients": 9, "samples": 30, "size": 4, "channels": 1},
        "problem": {"name": "torch", "module": f"{__name__}:image"},
    }
    words = [*METHODS[name].split(), "algorithm.epochs=2", "algorithm.batch_size=8", "rounds=2", "stop.gradient=0"]
    runs = [package.run(override(table, [*words, *more])) for more in ([], ["problem.batched=false"])]
    assert [run.attrs["group"] for run in runs] == [torch_network.group_size("cpu", len(runs[0].x)), 1]
    assert np.allclose(runs[0].x, runs[1].x, rtol=1e-7, atol=1e-9)
    assert np.allclose(runs[0].rounds["objective"], runs[1].rounds["objective"], rtol=1e-9)


def image():
    return nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 6))
