"""Networks and losses that remember, draw in evaluation or change what they are given: one sentence, and its advice."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from tests.helpers.torch_cases import C, N, dataset, network, torch

pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional
CALLS = 0


class Net(nn.Module):
    """A linear layer behind what DOES says."""

    def __init__(self, does="nothing"):
        super().__init__()
        self.head, self.does = nn.Linear(N, C), does
        self.calls, self.seen = 0, []
        if does in LAYERS:
            self.before = LAYERS[does]()

    def forward(self, samples):
        return self.head(self.before(samples) if self.does in LAYERS else DOES[self.does](self, samples))


LAYERS = {"has dropout": lambda: nn.Dropout(0.5), "rectifies": lambda: nn.ReLU(inplace=True)}


def count(net, samples):
    net.calls += 1
    return samples * (1 if net.calls < 100 else 2)


def count_in_training(net, samples):
    net.head.calls = getattr(net.head, "calls", 0) + net.training
    return samples


def collect(net, samples):
    net.seen.append(1)
    return samples / len(net.seen)


def count_outside(net, samples):
    global CALLS
    CALLS += 1
    return samples / CALLS


def keep(net, samples):
    """It keeps what it has seen, and does not use it."""
    net.last = samples
    return samples


def add(net, samples):
    samples += 1
    return samples


DOES = {
    "nothing": lambda net, samples: samples,
    "drops": lambda net, samples: F.dropout(samples, 0.5),
    "drops in training": lambda net, samples: F.dropout(samples, 0.5, net.training),
    "counts": count,
    "counts in training": count_in_training,
    "collects": collect,
    "counts outside": count_outside,
    "draws elsewhere": lambda net, samples: samples * np.random.uniform(),  # noqa: NPY002
    "keeps": keep,
    "adds": add,
    "adds to a copy": lambda net, samples: add(net, samples.clone()),
}
WRONG = {
    "drops": r"draws random numbers in evaluation.*: write nn\.Dropout\(p\), or F\.dropout\(x, p, self\.training\)",
    "counts": r"must not change its attributes in a call, but it changes calls: f_i would depend on the order",
    "counts in training": r"must not change its attributes in a call, but it changes head\.calls:",
    "collects": r"gives other scores when it is called again with the same samples",
    "counts outside": r"gives other scores when it is called again with the same samples",
    "draws elsewhere": r"gives other scores when it is called again .* and draw from torch's generator alone",
    "adds": r"must not change its samples in place: change a copy, as in x = x\.clone\(\)",
    "rectifies": r"must not change its samples in place",
}


def own(does):
    return network(f"{__name__}:Net", arguments={"does": does})


@pytest.mark.parametrize("does", WRONG)
def test_a_network_that_is_no_function_of_parameters_and_samples_is_refused(does):
    with pytest.raises(UserError, match=WRONG[does]):
        own(does).initial(dataset(), 0)


@pytest.mark.parametrize("does", ["drops in training", "has dropout", "keeps", "adds to a copy"])
def test_what_the_sentences_advise_and_what_changes_no_score_runs(does):
    assert len(own(does).initial(dataset(), 0)) == C * (N + 1)


def shifts(scores, targets):
    targets -= 1
    return F.cross_entropy(scores, targets.clamp(min=0), reduction="none")


def hides(scores, targets):
    targets.numpy()[:] += 1
    return F.cross_entropy(scores, targets, reduction="none")


def shifts_a_copy(scores, targets):
    targets = targets.clone()
    targets -= 1
    return F.cross_entropy(scores, targets.clamp(min=0), reduction="none")


def doubles(scores, targets):
    scores *= 2
    return F.cross_entropy(scores, targets, reduction="none")


def centres(scores, targets):
    targets -= targets.mean()
    return (scores[:, 0] - targets) ** 2


def spreads(scores, targets):
    return (scores[:, :1] - targets[None, :]) ** 2


def few(scores, targets):
    if len(targets) > 7:
        raise RuntimeError("more than seven")
    return F.cross_entropy(scores, targets, reduction="none")


def run(loss, **more):
    data = {"name": "synthetic", "clients": 4, "features": N, "classes": C, "least": 9, "most": 12}
    problem = {"name": "torch", "module": f"{__name__}:Net", "loss": f"{__name__}:{loss}", **more}
    return package.run(data=data, problem=problem, algorithm={"name": "gd", "gamma": 0.1}, rounds=1, dtype="float32")


@pytest.mark.parametrize(
    ("loss", "words", "more"),
    [
        ("shifts", r"it changes its targets in place: change a copy, as in targets = targets\.clone\(\)", {}),
        ("hides", r"it changes its targets in place", {}),
        ("doubles", r"it changes its scores in place: change a copy, as in scores = scores\.clone\(\)", {}),
        ("centres", r"it changes its targets in place", {"targets": "numbers", "metric": f"{__name__}:spreads"}),
        ("spreads", r"it gives an array \[2, 2\] for 2 samples and an array \[4, 4\] for 4: one loss each", {}),
        ("few", r"it fails on \d+ samples of a client: RuntimeError: more than seven", {}),
    ],
)
def test_a_loss_that_changes_what_it_is_given_or_has_another_shape_is_refused_in_a_sentence(loss, words, more):
    with pytest.raises(UserError, match=rf'problem\.loss = ".*:{loss}" is wrong: {words}'):
        run(loss, **more)


def test_a_loss_that_changes_a_copy_runs():
    assert run("shifts_a_copy").status == "finished"
