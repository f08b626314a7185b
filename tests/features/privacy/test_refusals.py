"""A method of one's own under [privacy]: one that uploads a change in one mean runs, and others are refused."""

from typing import NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.extend import Array, Upload

STUDY = {
    "data": {"name": "linreg-noniid", "clients": 9, "features": 5, "least": 6, "most": 20},
    "rounds": 3,
    "selection": {"count": 3},
    "privacy": {"clip": 0.01, "noise_multiplier": 0.0},
}
FAR = {"clip": 1e9, "noise_multiplier": 0.0}


class Client(NamedTuple):
    pass


class Server(NamedTuple):
    x: Array  # (n,) model


class Descends(mpifed.extend.Algorithm):
    """Clients upload a step of gradient descent, and the server adds their mean to its model."""

    upload = Upload(content="change")

    def init_client(self, f):
        return Client()

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        return Server(server.x + fed.mean(self.step, server.x, to=fed.select(server.x)))

    def step(self, f, client, x):
        return client, -0.02 * f.grad(x)


class Moves(Descends):
    """The same with models as uploads, which is what is taken where a method says nothing."""

    upload = Upload()

    def round(self, fed, server):
        return Server(fed.mean(self.move, server.x, to=fed.select(server.x)))

    def move(self, f, client, x):
        return client, x - 0.02 * f.grad(x)


class AsksBefore(Descends):
    def init_server(self, fed):
        return Server(fed.mean(self.step, fed.initial()))


class AsksForRows(Descends):
    def round(self, fed, server):
        return Server(server.x + fed.call(self.step, server.x, to=fed.select(server.x)).mean(axis=0))


class AsksForSum(Descends):
    def round(self, fed, server):
        return Server(server.x + fed.sum(self.step, server.x, to=fed.select(server.x)) / 3)


class AsksForMaximum(Descends):
    def round(self, fed, server):
        return Server(server.x + fed.max(self.step, server.x, to=fed.select(server.x)))


class AsksAll(Descends):
    def round(self, fed, server):
        fed.select(server.x)
        return Server(server.x + fed.mean(self.step, server.x))


class SelectsNobody(Descends):
    def round(self, fed, server):
        return Server(server.x + fed.mean(self.step, server.x))


class AsksSome(Descends):
    def round(self, fed, server):
        return Server(server.x + fed.mean(self.step, server.x, to=fed.select(server.x)[:2]))


class Peeks(Descends):
    def round(self, fed, server):
        fed.select(server.x)
        return Server(server.x + fed.inspect(self.peek, "sum", (server.x,)) / 9)

    def peek(self, f, client, x):
        return -0.02 * f.grad(x)


class AsksTwice(Descends):
    def round(self, fed, server):
        to = fed.select(server.x)
        x = server.x + fed.mean(self.step, server.x, to=to)
        return Server(x + fed.mean(self.step, x, to=to))


class AddsNumber(Descends):
    def round(self, fed, server):
        change, _ = fed.mean(self.pair, server.x, to=fed.select(server.x))
        return Server(server.x + change)

    def pair(self, f, client, x):
        return client, (-0.02 * f.grad(x), f.value(x))


class SendsNoModel(Moves):
    def round(self, fed, server):
        return Server(fed.mean(self.start, 0.02, to=fed.select(server.x)))

    def start(self, f, client, rate):
        return client, f.initial() - rate * f.grad(f.initial())


class SendsTwoModels(Moves):
    def round(self, fed, server):
        return Server(fed.mean(self.pair, server.x, to=fed.select(server.x))[0])

    def pair(self, f, client, x):
        return client, (x - 0.02 * f.grad(x), f.initial())


class CallsItScore(Descends):
    """A method of the name by which selections ask for scores, which pass as they are."""

    def round(self, fed, server):
        return Server(server.x + fed.mean(self.score, server.x))

    def score(self, f, client, x):
        return client, -0.02 * f.grad(x)


REFUSED = [
    (AsksBefore, "it asks clients for step before round one, which no noise covers"),
    (AsksForRows, "what it asks for with step is no mean over the clients of a round"),
    (AsksForSum, "what it asks for with step is no mean over the clients of a round"),
    (AsksForMaximum, "what it asks for with step is no mean over the clients of a round"),
    (AsksAll, "it asks others than the selected clients for step"),
    (SelectsNobody, "it asks others than the selected clients for step"),
    (AsksSome, "it asks others than the selected clients for step"),
    (AsksTwice, "its rounds take more than one mean, and ε counts one a round"),
    (AddsNumber, "pair uploads single numbers beside its vectors, and the bound is one of vectors"),
    (SendsNoModel, "start uploads no change of one model that clients were sent"),
    (SendsTwoModels, "pair uploads no change of one model that clients were sent"),
]


@pytest.mark.parametrize(("method", "sentence"), REFUSED)
def test_a_method_that_no_noise_covers_is_refused_in_one_sentence_and_nothing_is_written(method, sentence, tmp_path):
    assert mpifed.run(STUDY | {"algorithm": method(), "privacy": None}).cr == 3
    with pytest.raises(UserError) as error:
        mpifed.run(STUDY | {"algorithm": method()}, path=tmp_path / "out.h5")
    assert str(error.value) == f"privacy cannot be used with {__name__}:{method.__name__}: {sentence}"
    assert not list(tmp_path.iterdir())


def test_a_name_of_scores_exempts_no_method_where_something_is_guaranteed():
    pytest.importorskip("dp_accounting")
    with pytest.raises(UserError, match=r"it asks others than the selected clients for score$"):
        mpifed.run(STUDY | {"algorithm": CallsItScore(), "privacy": {"noise_multiplier": 1.0}})
    # without noise nothing forbids a selection by scores
    assert mpifed.run(STUDY | {"algorithm": Descends(), "selection": "biased"}).cr == 3


def test_a_method_does_not_get_past_clipping_and_noise_by_asking_for_the_record():
    pytest.importorskip("dp_accounting")
    assert mpifed.run(STUDY | {"algorithm": Peeks()}).cr == 3  # z = 0: nothing is guaranteed
    with pytest.raises(UserError, match=r"it asks clients for peek by fed\.inspect, past clipping and noise$"):
        mpifed.run(STUDY | {"algorithm": Peeks(), "privacy": {"noise_multiplier": 1.0}})


@pytest.mark.parametrize("method", [Descends, Moves])
def test_a_method_that_uploads_one_change_or_model_says_nothing_else(method):
    plain, clipped, short = (
        mpifed.run(STUDY | {"algorithm": method(), "privacy": table}) for table in (None, FAR, STUDY["privacy"])
    )
    np.testing.assert_allclose(clipped.x, plain.x, rtol=1e-12)
    assert 0 < np.linalg.norm(short.x) <= 0.03 * (1 + 1e-9) < np.linalg.norm(plain.x)
