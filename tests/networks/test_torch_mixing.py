"""Networks that mix the samples of a batch, and losses that do: they are those of plain torch, without padding."""

import numpy as np
import pytest

import mpifed as package
from mpifed.kernels.blocks import padding_weights
from mpifed.report.summary import show
from tests.helpers.torch_cases import C, N, at, by_torch, dataset, local, network, point, samples, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn
F = nn.functional
SIZES = (70, 50, 25, 13, 6)

MIXED = {  # what stands between the two layers
    "Normed": lambda net, hidden: F.batch_norm(hidden, None, None, training=True),
    "Centred": lambda net, hidden: hidden - hidden.mean(0),
    "Attentive": lambda net, hidden: (hidden @ hidden.T / 6**0.5).softmax(1) @ hidden,
    "Scaled": lambda net, hidden: hidden / (hidden.std(0, correction=0) + 0.1),
    "Shares": lambda net, hidden: hidden.softmax(0),
    "Gated": lambda net, hidden: hidden + net.gate * hidden.mean(0),  # its first parameters mix nothing
    "Counted": lambda net, hidden: hidden * len(hidden),  # the number of others alone
    "Before": lambda net, hidden: hidden.cumsum(0),
    "Positive": lambda net, hidden: hidden - hidden.mean(0),  # for samples above zero alone
    "InTraining": lambda net, hidden: hidden - hidden.mean(0) if net.training else hidden,
    "Words": lambda net, hidden: hidden - hidden.mean(0),
    "Plain": lambda net, hidden: hidden,
    "Transposed": lambda net, hidden: net.dropout(hidden.T).T,  # whose masks are functions of the size of the batch
    "Random": lambda net, hidden: F.dropout(hidden, 0.4, net.training),
    "Single": lambda net, hidden: hidden @ torch.eye(6),  # in single precision alone
}


class Mixing(nn.Module):
    """Two layers, and between them what MIXED says."""

    def __init__(self, kind="Plain"):
        super().__init__()
        self.kind = kind
        if kind == "Gated":
            self.gate = nn.Parameter(torch.zeros(()))
        self.first, self.last = nn.Linear(N, 6), nn.Linear(6, C)
        if kind == "Transposed":
            self.dropout = nn.Dropout(0.4)
        if kind == "Words":
            self.words = nn.Embedding(20, 1)

    def forward(self, samples):
        if self.kind in ("Words", "Positive"):
            samples = self.words(samples)[..., 0] if self.kind == "Words" else samples.log()
        return self.last(MIXED[self.kind](self, self.first(samples)).tanh())


def contrasted(scores, targets):
    """One number for each sample, with the scores of the others for its class."""
    return -scores.log_softmax(0).gather(1, targets[:, None])[:, 0]


def expanded(scores, targets):
    """The mean, once for each sample."""
    return F.cross_entropy(scores, targets).expand(len(targets))


KINDS = list(MIXED)
MIXING, SUBTLE, APART = KINDS[:5], KINDS[5:11], KINDS[11:]
SAID = "the network makes the scores of a sample depend on the others in its batch"


def own(kind, **options):
    return network(f"{__name__}:Mixing", arguments={"kind": kind}, **options)


def run(folder, name, **options):
    """The result of a short run, and the samples of each client."""
    data = dataset(sizes=SIZES)
    A, b = data.rows(0, len(SIZES))
    np.savez(folder / "clients.npz", X=A, y=b, sizes=SIZES)
    result = package.run(
        {
            "data": {"name": "file", "path": str(folder / "clients.npz")},
            "problem": {"name": "torch", "module": f"{__name__}:Mixing", "arguments": {"kind": name}},
            "algorithm": {"name": "fedavg", "step": {"name": "constant", "a": 0.1}} | options,
            "selection": "all",
            "stop": {"gradient": 0.0},
            "rounds": 3,
        }
    )
    return result, [samples(data, i) for i in range(len(SIZES))]


ALL, SOME = {"k0": 2}, {"epochs": 1, "batch_size": 9}
QUICK = [("Normed", ALL), ("Attentive", ALL)]
SLOW = [*((name, ALL) for name in ("Centred", "Scaled", "Shares")), *((name, SOME) for name in MIXING)]


@pytest.mark.parametrize(("name", "options"), [*QUICK, *(slow(*one) for one in SLOW)])
def test_a_run_records_what_plain_torch_finds_at_its_module_and_takes_its_steps(name, options, tmp_path):
    result, clients = run(tmp_path, name, **options)
    module = result.module()
    found = [by_torch(module, *own)[0] for own in clients]
    assert np.isclose(result.rounds["objective"][-1], np.mean(found), rtol=1e-12)
    right = [(module(torch.tensor(A)).argmax(1).numpy() == b).mean() for A, b in clients]
    assert np.isclose(result.rounds["accuracy"][-1], np.mean(right), rtol=1e-12)
    assert f"clients one at a time, because {SAID}" in " ".join(show(result).split())
    if "k0" in options:
        assert np.allclose(result.x, by_a_loop(name, clients), rtol=1e-9, atol=1e-12)


def by_a_loop(name, clients):
    """Three rounds of FedAvg in plain torch, with two steps each."""
    x = starting(own(name))
    for _ in range(3):
        models = []
        for A, b in clients:
            module = at(Mixing(name), x).train()
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(module(torch.tensor(A)), torch.tensor(b.astype(int))).backward()
                optimizer.step()
            models.append(nn.utils.parameters_to_vector(module.parameters()).detach().numpy())
        x = np.mean(models, 0)
    return x


@pytest.mark.parametrize("name", MIXING)
def test_in_a_step_the_batch_is_the_mini_batch(name, monkeypatch):
    """With some clients that have fewer samples in it; evaluated are all samples of a client in one pass."""
    monkeypatch.setattr("mpifed.networks.torch_network.PIECE_BYTES", 1)
    data = dataset(sizes=SIZES)
    f = local(own(name), data)
    X = point(f, (len(SIZES),))
    counts = np.array([8, 6, 5, 4, 3])
    picks = np.random.default_rng(2).integers(0, 6, (len(SIZES), 8))
    part = f.block.batch(picks, padding_weights(counts, 8, np.float64))
    values, gradients = f.value_grad(X)
    for i, steps in enumerate(f.problem.grad(part, X)):
        A, b = samples(data, i)
        module = at(Mixing(name), X[i])
        value, gradient = by_torch(module.eval(), A, b)
        assert np.isclose(values[i], value, rtol=1e-12)
        assert np.allclose(gradients[i], gradient, rtol=1e-9, atol=1e-12)
        rows = picks[i, : counts[i]]
        assert np.allclose(steps, by_torch(module.train(), A[rows], b[rows])[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SUBTLE)
def test_what_mixes_samples_of_some_kind_or_in_training_alone_is_found(name):
    problem = own(name, integers=name == "Words")
    assert problem.run_attributes(N, starting(problem))["group_reason"] == SAID


def starting(problem):
    return problem.initial(dataset(sizes=SIZES), 0)


@pytest.mark.parametrize("name", APART)
def test_what_computes_samples_apart_is_not_said_to_mix_them(name):
    """Rounding, random numbers, and masks that are functions of the size of a batch are no mixing."""
    x = starting(own(name)).astype("float32" if name == "Single" else "float64")
    assert not own(name)._built(N, len(x))[0].one_pass_reason


@pytest.mark.parametrize("loss", [contrasted, expanded])
def test_a_loss_that_mixes_samples_is_computed_without_padding(loss, monkeypatch):
    monkeypatch.setattr("mpifed.networks.torch_network.PIECE_BYTES", 1)
    data = dataset(sizes=SIZES)
    f = local(own("Plain", loss=f"{__name__}:{loss.__name__}"), data)
    x = point(f)
    for i, (value, gradient) in enumerate(zip(*f.value_grad(x), strict=True)):
        wanted = by_torch(at(Mixing(), x), *samples(data, i), lambda scores, b: loss(scores, b).mean())
        assert np.isclose(value, wanted[0], rtol=1e-12)
        assert np.allclose(gradient, wanted[1], rtol=1e-9, atol=1e-12)
    said = f.problem.run_attributes(N, x)["group_reason"]
    assert said == "the loss of a sample depends on the others in its batch"
