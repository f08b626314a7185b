"""Networks and losses that remember, draw in evaluation or change what they are given: one sentence, and its advice."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from tests.helpers.torch_cases import C, N, dataset, network, torch

pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional
CALLS = 0


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(N, C)
        self.calls = 0
        self.seen = []

    def forward(self, samples):
        return self.head(self.before(samples))


class Drops(Base):
    def before(self, samples):
        return F.dropout(samples, 0.5)


class DropsInTraining(Base):
    def before(self, samples):
        return F.dropout(samples, 0.5, self.training)


class HasDropout(Base):
    def __init__(self):
        super().__init__()
        self.before = nn.Dropout(0.5)


class Counts(Base):
    def before(self, samples):
        self.calls += 1
        return samples * (1 if self.calls < 100 else 2)


class CountsInTraining(Base):
    def before(self, samples):
        self.head.calls = getattr(self.head, "calls", 0) + self.training
        return samples


class Collects(Base):
    def before(self, samples):
        self.seen.append(1)
        return samples / len(self.seen)


class CountsOutside(Base):
    def before(self, samples):
        global CALLS
        CALLS += 1
        return samples / CALLS


class DrawsElsewhere(Base):
    def before(self, samples):
        return samples * np.random.uniform()  # noqa: NPY002


class Keeps(Base):
    """It keeps what it has seen, and does not use it."""

    def before(self, samples):
        self.last = samples
        return samples


class Adds(Base):
    def before(self, samples):
        samples += 1
        return samples


class Rectifies(Base):
    def __init__(self):
        super().__init__()
        self.before = nn.ReLU(inplace=True)


class AddsToACopy(Base):
    def before(self, samples):
        samples = samples.clone()
        samples += 1
        return samples


WRONG = {
    Drops: r"draws random numbers in evaluation.*: write nn\.Dropout\(p\), or F\.dropout\(x, p, self\.training\)",
    Counts: r"must not change its attributes in a call, but it changes calls: f_i would depend on the order",
    CountsInTraining: r"must not change its attributes in a call, but it changes head\.calls:",
    Collects: r"gives other scores when it is called again with the same samples",
    CountsOutside: r"gives other scores when it is called again with the same samples",
    DrawsElsewhere: r"gives other scores when it is called again .* and draw from torch's generator alone",
    Adds: r"must not change its samples in place: change a copy, as in x = x\.clone\(\)",
    Rectifies: r"must not change its samples in place",
}


@pytest.mark.parametrize("cls", WRONG)
def test_a_network_that_is_no_function_of_parameters_and_samples_is_refused(cls):
    with pytest.raises(UserError, match=WRONG[cls]):
        network(f"{__name__}:{cls.__name__}").initial(dataset(), 0)


@pytest.mark.parametrize("cls", [DropsInTraining, HasDropout, Keeps, AddsToACopy])
def test_what_the_sentences_advise_and_what_changes_no_score_runs(cls):
    assert len(network(f"{__name__}:{cls.__name__}").initial(dataset(), 0)) == C * (N + 1)


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
    problem = {"name": "torch", "module": f"{__name__}:Keeps", "loss": f"{__name__}:{loss}", **more}
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
