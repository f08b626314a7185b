"""What every algorithm says of itself, and its promises about bits, types and arguments in settings of all kinds."""

import re
from functools import partial
from typing import Annotated

import msgspec
import numpy as np
import pytest
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Client, Server, count_gradients
from mpifed.extend import Algorithm, Local
from mpifed.federation.method import find_method
from tests.helpers import traits
from tests.helpers.algorithm_cases import GRAPHED, SERVED
from tests.helpers.algorithm_runs import Run, build, same
from tests.helpers.settings import ON_GRAPHS, WITH_SERVER, covering, every_row, rows, started
from tests.helpers.watching import Watch


class Descent(Algorithm):
    """Gradient descent; ``lr`` and ``k0`` are names that mpifed gives no meaning to in a class from outside."""

    lr: float = 0.1
    k0: int = 7

    def init_client(self, f):
        return Client()

    def init_server(self, fed):
        return Server(x=fed.initial())

    def round(self, fed, server):
        return Server(x=server.x - self.lr * fed.mean(self.gradient, server.x, to=fed.select(server.x)))

    def gradient(self, f, client, x):
        return client, f.grad(x)


class Tuned(Descent):
    lr: Annotated[float, Meta(extra={"tuned": True})] = 0.1

    def sample_gradients(self, d):
        return self.k0 * d


def test_nothing_is_guessed_from_the_names_of_options():
    d = np.array([3, 5])
    assert np.array_equal(Descent().sample_gradients(d), d)
    assert np.array_equal(Tuned().sample_gradients(d), [21, 35])
    told = traits.divergence_advice(Descent()), traits.divergence_advice(Tuned())
    assert told == ("look at the step size", "look at algorithm.lr")


@pytest.mark.parametrize("name", Algorithm.choices)
def test_error_messages_name_an_option_that_the_algorithm_has(name):
    algorithm = build(name)
    (option,) = re.findall(r"algorithm\.(\w+)", traits.divergence_advice(algorithm))
    assert option in {field.name for field in msgspec.structs.fields(type(algorithm))}


@pytest.mark.parametrize(
    ("k0", "epochs", "batch_size"), [(4, 0, 0), (4, 0, 6), (4, 0, 1000), (1, 3, 0), (4, 3, 6), (4, 2, 1000)]
)
def test_passes_counts_the_gradients_of_local_steps(k0, epochs, batch_size, monkeypatch):
    run, counted = Run(Descent()), np.zeros(12)
    grad = Local.grad

    def counting(f, X):
        counted[f.ids] += (f.block.w > 0).sum(axis=1)
        return grad(f, X)

    def gradient(self, f, client, x):
        w = np.broadcast_to(x, (len(f), f.n))
        for _, batch, has in f.steps(k0, epochs, batch_size):
            w = w - 0.01 * has * batch.grad(w)
        return client, w

    monkeypatch.setattr(Local, "grad", counting)
    monkeypatch.setattr(Descent, "gradient", gradient)
    run.rounds(1)
    selected = run.fed.selected
    assert np.array_equal(counted[selected], count_gradients(run.data.sizes, k0, epochs, batch_size)[selected])
    assert not np.delete(counted, selected).any()


# not by default: "plain" is "small blocks" on one side, and "cover" and "star" are no other paths than those left
FEW = {
    "feature": ["small blocks", "compressed", "unreliable", "asynchronous"],
    "selection": ["uniform", "all", "biased"],
}
FEW_GRAPHS = {"feature": ["small blocks", "timed"], "graph": ["ring", "lossy", "redrawn"]}
COVER = [*rows(covering, WITH_SERVER | FEW), *rows(covering, ON_GRAPHS | FEW_GRAPHS)]


def check_bits_and_types(algorithm, row, rounds):
    """The same run on one host, whose client methods cannot write to their arguments, and on several."""
    alone, together = started(algorithm, row), started(algorithm, row, together=True)
    watch = Watch(algorithm)
    alone.hosts[0].find_method = partial(find_method, watch)
    models = [run.rounds(rounds) for run in (alone, together)]
    states = [run.states() for run in (alone, together)]
    found = [run.fed.evaluate(run.server.x) for run in (alone, together)]
    assert models[0].tobytes() == models[1].tobytes(), row
    assert same(*states), row
    assert same(*([*one.sums.values(), *one.maxima.values()] for one in found)), row
    assert vars(alone.fed.ledger) == vars(together.fed.ledger), row
    assert np.array_equal(alone.fed.times_selected, together.fed.times_selected), row
    assert watch.kept, row
    assert watch.models == {np.dtype(row["dtype"])}, row
    assert {alone.server.x.dtype, *(v.dtype for v in states[0] if v.ndim > 1)} == watch.models, row


@pytest.mark.parametrize("place", range(len(COVER)), ids=["-".join(row.values()) for _, row in COVER])
def test_bits_and_types_depend_neither_on_hosts_nor_on_blocks_nor_on_arguments_that_can_be_written_to(place):
    check_bits_and_types(*COVER[place], rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*SERVED, *GRAPHED])
def test_bits_and_types_are_kept_in_every_setting(method):
    factors = (ON_GRAPHS if method in GRAPHED else WITH_SERVER) | {"method": [method]}
    for algorithm, row in rows(every_row, factors):
        check_bits_and_types(algorithm, row, rounds=4)
