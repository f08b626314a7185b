"""FedGiA: its t, also for problems of one's own, and its asynchronous form."""

from math import log

import numpy as np
import pytest

import mpifed
from mpifed import LinearModel
from mpifed.algorithms.fedgia import FedGiA
from mpifed.core.errors import UserError
from mpifed.data.sources.gaussian import Gaussian
from mpifed.problems.base import Problem
from mpifed.problems.logistic import Logistic, LogisticLoss
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from tests.helpers.algorithm_runs import M, N, Run
from tests.oracles import event_loop, fedgia_async
from tests.oracles import problems as written_out
from tests.oracles.study import SIZES
from tests.oracles.synchronous import Lasting, rounds


class Derived(LogisticLoss):
    """A logistic loss without a regulariser."""


class Own(LinearModel):
    """ln(1 + e^−bz), labels b = −1 and 1, written anew; it says that it is a logistic loss."""

    curvature = 0.25
    logistic_loss = True

    def labels(self, b):
        return 2 * np.maximum(b, 0) - 1

    def loss(self, Z, b):
        return np.logaddexp(0, -b * Z)

    def slope(self, Z, b):
        return -b / (1 + np.exp(b * Z))


class Silent(Own):
    """The same loss, not saying so."""

    logistic_loss = False


def run(problem):
    data = Gaussian(clients=M, features=N, samples=20).load(0, "float64")
    return Run(FedGiA(), problem, data=data)


def sigma(problem, t):
    """σ = t·max r_i/m."""
    started = run(problem)
    r = max(problem.lipschitz(block).max() for host in started.hosts for block in host.blocks)
    assert started.server.sigma == pytest.approx(t * r / M, rel=1e-12)
    return started.server.sigma


@pytest.mark.parametrize("problem", [Logistic(), NonconvexLogistic(), Derived(), Own()], ids=lambda p: type(p).__name__)
def test_a_logistic_loss_gets_the_t_of_logistic_regression_whatever_its_name(problem):
    assert sigma(problem, max(0.025, 4 * log(M * 20) / N)) > sigma(Silent(), 0.15)


def test_a_logistic_loss_of_ones_own_has_the_iterates_of_mpifeds():
    assert np.allclose(run(Own()).rounds(5), run(Derived()).rounds(5), rtol=1e-9)


def test_fedgia_takes_t_from_table_iii():
    assert FedGiA().scale(Problem.build("least-squares", "problem").logistic_loss, samples=8992, n=1024) == 0.15
    for name in ("logistic", "nonconvex-logistic"):
        logistic = Problem.build(name, "problem").logistic_loss
        assert np.isclose(FedGiA().scale(logistic, samples=8992, n=1024), 4 * np.log(8992) / 1024)
        assert FedGiA().scale(logistic, samples=8992, n=10**6) == 0.025
        assert FedGiA(t=7.0).scale(logistic, samples=8992, n=1024) == 7.0


def seconds(i, count):
    return 0.4 + 0.4 * SIZES[i]


def logistic():
    rng = np.random.default_rng(1)
    clients = [(rng.standard_normal((d, 4)), rng.integers(0, 2, d)) for d in SIZES]
    return [written_out.Logistic(A, b, mu=0.2, regulariser="whole") for A, b in clients]


class Gradients(Lasting):
    """x⁺ = mean of x_s − rate ∇f_i(x_s), with the last gradient of each client."""

    def __init__(self, clients, rate):
        super().__init__(clients)
        self.rate = rate

    def begin(self, i):
        return self.x - self.rate * self.clients[i].gradient(self.x)


def models(method, steps, duration=seconds):
    """The models of an asynchronous run with one arrival a step, and who arrived from which of them."""
    found = [method.x]
    moved = method.step
    started = []

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
    own, _ = models(fedgia_async.Method(clients, k0=2, H="zero", t=t), 60)
    assert np.allclose(own, models(Gradients(clients, rate), 60)[0], rtol=1e-12)


def test_no_delay_makes_gradient_steps_diverge():
    """The distance from x* is at most (1 − α/(tL)) times the largest at the starts of the last uploads."""
    clients = logistic()
    t = 0.7
    alpha = 0.2
    L = max(client.lipschitz for client in clients)
    assert t >= (1 + alpha / L) / 2
    method = fedgia_async.Method(clients, k0=2, H="zero", t=t)
    *_, (best, _) = rounds(method, [range(len(SIZES))] * 400)
    method = fedgia_async.Method(clients, k0=2, H="zero", t=t)
    found, started = models(method, 600, lambda i, count: seconds(i, 0) ** (1 + (i == 1)))
    away, last = np.linalg.norm(found - best, axis=1), {}
    for k, starts in enumerate(started):
        last |= starts
        if len(last) == len(SIZES):
            assert away[k + 1] <= (1 - alpha / (t * L)) * max(away[s] for s in last.values()) + 1e-12
    assert len(last) == len(SIZES)
    assert max(k - s for k, starts in enumerate(started) for s in starts.values()) > 50


def test_fedgia_itself_says_which_method_is_asynchronous():
    table = {"system": {"speed": 10.0}, "asynchronous": {"arrivals": 2}, "algorithm": "fedgia"}
    with pytest.raises(UserError, match=r"fedgia cannot be asynchronous, because .*fedgia-async"):
        mpifed.run(table)
