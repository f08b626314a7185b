"""What every algorithm says of itself: its work, the option to change where it diverges, what it inherits from."""

from typing import Annotated

import msgspec
import numpy as np
import pytest
from msgspec import Meta

import mpifed
from mpifed import Algorithm, Local, UserError
from mpifed.algorithms.bases.algorithm import Client, Server, passes
from tests.helpers import traits
from tests.helpers.algorithm_runs import Run, build


class Descent(Algorithm):
    """Gradient descent; ``lr`` and ``k0`` are names that mpifed gives no meaning to in a class from outside."""

    lr: float = 0.1
    k0: int = 7

    def join(self, f):
        return Client()

    def start(self, fed):
        return Server(x=fed.initial())

    def round(self, fed, server):
        return Server(x=server.x - self.lr * fed.mean(self.gradient, server.x, to=fed.select(server.x)))

    def gradient(self, f, client, x):
        return client, f.grad(x)


class Tuned(Descent):
    lr: Annotated[float, Meta(extra={"tuned": True})] = 0.1

    def work(self, d):
        return self.k0 * d


def test_nothing_is_guessed_from_the_names_of_options():
    d = np.array([3, 5])
    assert np.array_equal(traits.said_work(Descent(), d), d)
    assert np.array_equal(traits.said_work(Tuned(), d), [21, 35])
    assert (traits.tuning(Descent()), traits.tuning(Tuned())) == ("the step size", "algorithm.lr")


@pytest.mark.parametrize("name", Algorithm.choices)
def test_error_messages_name_an_option_that_the_algorithm_has(name):
    algorithm = build(name)
    option = traits.tuning(algorithm).removeprefix("algorithm.")
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
    assert np.array_equal(counted[selected], passes(run.data.sizes, k0, epochs, batch_size)[selected])
    assert not np.delete(counted, selected).any()


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_dual_methods_refuse_to_select_one_client_and_say_why(name):
    with pytest.raises(UserError) as refused:
        mpifed.run({"algorithm": name, "data": "quadratic", "selection": {"count": 1}, "rounds": 1})
    assert str(refused.value) == (
        f"selection takes 1 client a round, but {name} needs at least 2: with one client the mean equals its own "
        "model, so the dual variables never change"
    )
