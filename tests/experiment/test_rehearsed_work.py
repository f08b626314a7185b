"""The simulated time of a user's method that does not state its work is that of the same method with it."""

import re
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import count_gradients
from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import UserError
from tests.experiment.conftest import run

DATA = {"clients": 40, "features": 5, "least": 6, "most": 60}
STUDY = {"data": DATA, "rounds": 4, "selection": {"count": 7}}
STEP = {"name": "constant", "a": 0.01}


class Server(NamedTuple):
    x: mpifed.extend.Array


class Plain(mpifed.extend.Algorithm):
    """FedAvg in a few lines, without work(d)."""

    k0: int = 5
    batch_size: int = 0
    gamma: float = 0.01
    asynchronous = True

    def init_client(self, f):
        return ()

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        fed.send(self.train, server.x, to=fed.select(server.x))
        return Server(fed.mean(of=fed.arrivals()))

    def train(self, f, client, x):
        for _, batch, has in f.steps(self.k0, 0, self.batch_size):
            x = x - self.gamma * has * batch.grad(x)
        return client, x


class Stated(Plain):
    def sample_gradients(self, d):
        return count_gradients(d, self.k0, 0, self.batch_size)


class Twice(FedAvg, tag="twice"):
    """It inherits the work of fedavg, and does twice as much."""

    def update(self, f, client, x, *args):
        super().update(f, client, x, *args)
        return super().update(f, client, x, *args)


class Wavering(Plain):
    def train(self, f, client, x):
        for _ in range(1 + f.round % 2):
            x = x - self.gamma * f.grad(x)
        return client, x + f.zeros()


class Curved(Plain):
    requires = (mpifed.extend.Requirement("hessian"),)

    def train(self, f, client, x):
        return client, x - self.gamma * f.hessian(x + f.zeros())(f.grad(x))


class Unseeing(Plain):
    def train(self, f, client, x):
        return client, x + f.zeros()


class Failing(Plain):
    def round(self, fed, server):
        if fed.m == 16:  # in the rehearsal alone
            raise ZeroDivisionError("no such client")
        return super().round(fed, server)


def timed(algorithm, system=None, **more):
    """The simulated time of every round, and the notes."""
    result = mpifed.run({**STUDY, "algorithm": algorithm, "system": {"speed": 1000, **(system or {})}, **more})
    return result.rounds, result.attrs["notes"]


SETTINGS = {
    "steps": {},
    "mini-batches": {"batch_size": 3, "k0": 4},
    "deadline": {"system": {"speed": {"name": "lognormal", "median": 500.0}, "deadline": 0.4, "latency": 0.01}},
    "asynchronous": {"selection": "all", "asynchronous": {"arrivals": 5}, "rounds": 9},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_time_of_a_method_without_work_is_that_of_the_same_one_with_it(name):
    more = dict(SETTINGS[name])
    options = {key: more.pop(key) for key in ("batch_size", "k0") if key in more}
    own, note = timed(Plain(**options), **more)
    stated, nothing = timed(Stated(**options), **more)
    assert stated["simulated_seconds"][-1] > 0
    for column in ("simulated_seconds", "objective", "late", "staleness"):
        if column in stated:
            np.testing.assert_array_equal(own[column], stated[column])
    assert "a rehearsal of 3 rounds with 16 of 40 clients has counted" in note
    assert "rehearsal" not in nothing


def test_a_method_derived_from_a_built_in_one_is_counted_too_and_nothing_is_said_where_that_changes_nothing():
    built_in, _ = timed(FedAvg(step=STEP))
    twice, note = timed(Twice(step=STEP))
    np.testing.assert_allclose(twice["simulated_seconds"], 2 * built_in["simulated_seconds"])
    assert "has counted 10 for each sample" in note
    same, note = timed(type("Same", (FedAvg,), {"__module__": __name__}, tag="same")(step=STEP))
    np.testing.assert_array_equal(same["simulated_seconds"], built_in["simulated_seconds"])
    assert "rehearsal" not in note


def test_what_cannot_be_counted_is_said_and_what_the_note_advises_gives_the_right_time():
    _, note = timed(Wavering())
    assert "has counted 1 to 2 for each sample: rounds or clients of the same size differ" in note
    _, note = timed(Unseeing())
    assert "it computes without f.grad, so set system.passes" in note
    failing, note = timed(Failing())
    assert re.search(r"its first rounds fail \(round of .*: ZeroDivisionError: no such client\), so one gradient", note)
    assert "define sample_gradients(d), or set system.passes" in note
    stated, _ = timed(Stated())
    passed, note = timed(Failing(), system={"passes": 5})
    np.testing.assert_allclose(passed["simulated_seconds"], stated["simulated_seconds"])
    assert "rehearsal" not in note
    np.testing.assert_allclose(5 * failing["simulated_seconds"], stated["simulated_seconds"])
    data = {"data": {"name": "gaussian", "clients": 9, "samples": 11, "features": 5}}
    with pytest.raises(UserError, match=r"system\.passes is missing: .*Curved asks for f\.hessian"):
        timed(Curved(), problem="logistic", **data)
    curved, _ = timed(Curved(), problem="logistic", system={"passes": 2}, **data)
    np.testing.assert_allclose(curved["simulated_seconds"][-1], 4 * 2 * 11 / 1000)


def test_the_counted_time_of_a_file_is_the_same_after_a_resume(tmp_path):
    """And on ranks: tests/mpi/test_commands.py."""
    file = tmp_path / "own.py"
    file.write_text(
        textwrap.dedent("""
        from typing import NamedTuple
        import mpifed

        class Server(NamedTuple):
            x: mpifed.extend.Array

        class Own(mpifed.extend.Algorithm):
            def init_client(self, f):
                return ()
            def init_server(self, fed):
                return Server(fed.initial())
            def round(self, fed, server):
                return Server(fed.mean(self.train, server.x, to=fed.select(server.x)))
            def train(self, f, client, x):
                for _ in range(5):
                    x = x - 0.01 * f.grad(x)
                return client, x
        """)
    )
    words = ["data.clients=40", "data.features=5", "data.least=6", "data.most=60", "selection.count=7"]
    words += ["system.speed=1000", f"algorithm={file}:Own"]
    path = tmp_path / "out.h5"
    run("run", *words, "rounds=2", "-q", "-o", path)
    run("resume", path, "rounds=4", "-q")
    seconds, _ = timed(Stated())
    np.testing.assert_array_equal(mpifed.load(path).rounds["simulated_seconds"], seconds["simulated_seconds"])
