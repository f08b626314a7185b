"""Asynchronous FedGiA: FedGiA where all take part, gradient descent with old gradients where H_i = 0."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedgia import FedGiA
from mpifed.algorithms.fedgia_async import AsynchronousFedGiA
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import M, Run
from tests.oracles import event_loop, fedgia_async
from tests.oracles.asynchronous_admm import FedGiA as Oracle
from tests.oracles.asynchronous_admm import Lasting
from tests.oracles.problems import Logistic
from tests.oracles.study import SIZES


@pytest.mark.parametrize("options", [{}, {"H": "gram"}, {"first": "-gradient", "k0": 3}])
def test_where_all_take_part_it_is_fedgia(options):
    own, fedgia = (Run(kind(**options), selection=All()) for kind in (AsynchronousFedGiA, FedGiA))
    assert np.allclose(own.rounds(8), fedgia.rounds(8), rtol=1e-10, atol=1e-12)


def seconds(i, count):
    return 0.4 + 0.4 * SIZES[i]


def logistic():
    rng = np.random.default_rng(1)
    return [Logistic(rng.standard_normal((d, 4)), rng.integers(0, 2, d), mu=0.2, regulariser="whole") for d in SIZES]


class Gradients(Lasting):
    """x⁺ = mean of x_s − rate ∇f_i(x_s), with the last gradient of each client."""

    def __init__(self, clients, rate):
        super().__init__(clients)
        self.rate = rate

    def begin(self, i):
        return self.x - self.rate * self.clients[i].gradient(self.x)


def models(method, steps, duration=seconds):
    """The models of an asynchronous run with one arrival a step, and who arrived from which of them."""
    found, moved, started = [method.x], method.step, []

    def recording(uploads, ages):
        moved(uploads, ages)
        started.append({i: len(found) - 1 - age for i, age in zip(uploads, ages, strict=True)})
        found.append(method.x)

    method.step = recording
    event_loop.run(method, duration, steps, arrivals=1)
    return np.array(found), started


def test_with_zero_metric_uploads_are_gradient_steps_from_the_model_that_was_sent():
    """z_i = x − ∇f_i(x)/(mσ) from two steps on: H_i = 0 makes π_i = −ḡ_i in the first, and the second stays there."""
    clients, t = logistic(), 0.8
    rate = 1 / (t * max(client.lipschitz for client in clients))
    own, _ = models(Oracle(clients, k0=2, H="zero", t=t), 60)
    assert np.allclose(own, models(Gradients(clients, rate), 60)[0], rtol=1e-12)


def test_no_delay_makes_gradient_steps_diverge():
    """The distance from x* is at most (1 − α/(tL)) times the largest at the starts of the last uploads."""
    clients, t = logistic(), 0.7
    L, alpha = max(client.lipschitz for client in clients), 0.2
    assert t >= (1 + alpha / L) / 2
    best = fedgia_async.run(clients, [range(len(SIZES))] * 400, k0=2, H="zero", t=t)["x"][-1]
    found, started = models(Oracle(clients, k0=2, H="zero", t=t), 600, lambda i, count: seconds(i, 0) ** (1 + (i == 1)))
    away, last = np.linalg.norm(found - best, axis=1), {}
    for k, starts in enumerate(started):
        last |= starts
        if len(last) == len(SIZES):
            assert away[k + 1] <= (1 - alpha / (t * L)) * max(away[s] for s in last.values()) + 1e-12
    assert len(last) == len(SIZES)
    assert max(k - s for k, starts in enumerate(started) for s in starts.values()) > 50


def test_other_clients_rest():
    run = Run(AsynchronousFedGiA())
    before = run.states()[2].copy()
    run.rounds(1)
    moved = (run.states()[2] != before).any(axis=1)
    assert np.array_equal(moved, run.fed.mask(run.fed.selected))
    assert moved.sum() < M


def test_fedgia_itself_says_which_method_is_asynchronous():
    table = {"system": {"speed": 10.0}, "asynchronous": {"arrivals": 2}, "algorithm": "fedgia"}
    with pytest.raises(UserError, match=r"fedgia cannot be asynchronous, because .*fedgia-async"):
        mpifed.run(table)
