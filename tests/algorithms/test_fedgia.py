"""FedGiA: its t, also for problems of one's own, its asynchronous form, and the penalty that follows the curvature."""

from math import log
from types import SimpleNamespace

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms.fedgia import FedGiA
from mpifed.algorithms.parts.fedgia_steps import AdaptiveServer, default_penalty_factor, follow_curvature
from mpifed.data.sources.gaussian import Gaussian
from mpifed.extend import LinearModel
from mpifed.federation.participation.selection import All
from mpifed.problems.logistic import Logistic, LogisticLoss, NonconvexLogistic
from mpifed.theory.fedgia import certificate, table_factor
from tests.helpers.algorithm_runs import M, N, Run, smoothness
from tests.oracles import admm, event_loop
from tests.oracles import problems as written_out
from tests.oracles.study import SIZES
from tests.oracles.synchronous import rounds


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
    def t(problem, n):
        found = default_penalty_factor(SimpleNamespace(problem=problem, samples=8992, n=n))
        assert found == table_factor(problem.logistic_loss, 8992, n)  # with which theorems are judged
        return found

    assert t(Silent(), 1024) == 0.15
    assert t(Own(), 1024) == pytest.approx(4 * log(8992) / 1024)
    assert t(Own(), 10**6) == 0.025


def seconds(i, count):
    return 0.4 + 0.4 * SIZES[i]


def logistic():
    rng = np.random.default_rng(1)
    clients = [(rng.standard_normal((d, 4)), rng.integers(0, 2, d)) for d in SIZES]
    return [written_out.Logistic(A, b, mu=0.2, regulariser="whole") for A, b in clients]


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


def test_no_delay_makes_gradient_steps_diverge():
    """The distance from x* is at most (1 − α/(tL)) times the largest at the starts of the last uploads."""
    clients = logistic()
    t = 0.7
    alpha = 0.2
    L = max(client.lipschitz for client in clients)
    assert t >= (1 + alpha / L) / 2
    method = admm.FedGiAAsync(clients, k0=2, H="zero", t=t)
    *_, (best, _) = rounds(method, [range(len(SIZES))] * 400)
    method = admm.FedGiAAsync(clients, k0=2, H="zero", t=t)
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


def path_of(f, x, sigma, most, count):
    """States of x⁺ = x − f(x)/σ, f the gradient."""
    path = AdaptiveServer.initial(np.asarray(x, float), sigma, most)
    paths = [path]
    for _ in range(count):
        path = follow_curvature(path, path.x - f(path.x) / path.sigma, 0.0)
        paths.append(path)
    return paths


@pytest.mark.parametrize(
    ("sigma", "most", "models", "sigmas"),
    [
        (0.25, 100.0, [1.0, -31.0, 1.0, 0.0], [0.25, 0.25, 8.0, 8.0]),
        (4.0, 1e9, [1.0, -1.0, 1.0], [4.0, 4.0, 16.0]),
        (1.0, 4.0, [1.0, -7.0, 1.0], [1.0, 1.0, 4.0]),
        (512.0, 1e9, [], [512.0, 512.0, 256.0, 128.0, 64.0, 32.0, 16.0, 16.0, 16.0, 16.0]),
    ],
    ids=["a step far too long is taken back", "c = 8 <= 2σ: none is", "no curvature above most", "halved down to 2c"],
)
def test_a_penalty_comes_to_twice_the_curvature(sigma, most, models, sigmas):
    """f = ½ 8x²."""
    paths = path_of(lambda x: 8 * x, [1.0], sigma, most, len(sigmas) - 1)
    assert [path.sigma for path in paths] == sigmas
    assert [path.x.item() for path in paths[: len(models)]] == models
    assert paths[2].before == (1.0 if sigma <= 1 else paths[1].x)


def test_errors_make_the_penalty_larger_and_no_step_back():
    """f = ½ 8x², σ = 1/4; c is 8, give or take 2 · 248/4/32."""
    path = follow_curvature(AdaptiveServer.initial(np.ones(1), 0.25, 100.0), np.full(1, -31.0), 248.0)
    assert path.error == 62.0
    assert follow_curvature(path, np.full(1, 961.0), 248.0).sigma == 8.0  # c − e = 4.125 is still more than 2σ
    path = follow_curvature(AdaptiveServer.initial(np.ones(1), 4.0, 100.0), -np.ones(1), 16.0)
    after = follow_curvature(path, np.ones(1), 16.0)
    assert (after.x, after.before, after.sigma) == (1.0, -1.0, 32.0)  # the one nearest to 2(8 + 4)


def test_a_model_that_does_not_move_keeps_its_penalty():
    assert [path.sigma for path in path_of(np.zeros_like, [1.0, 2.0], 3.0, 9.0, 4)] == [3.0] * 5


@pytest.mark.parametrize("slope", [1e60, 1e-200])
def test_huge_and_tiny_steps_leave_numbers(slope):
    for path in path_of(lambda x: slope * x, [1.0], 1.0, slope, 40):
        assert np.isfinite(path.x).all()
        assert 0 < path.sigma < np.inf


def test_one_step_of_all_clients_does_not_lead_to_no_penalty_at_all():
    """With k0 = 1 and no resting clients uploads tell little of ∇f: by changes of s alone σ would fall for ever."""
    run = Run(FedGiA(adaptive=True, k0=1, t=0.2), selection=All())
    for _ in range(100):
        run.rounds(1)
        assert run.server.sigma > 0.01 * (smoothness(run).max() / M)


@pytest.mark.parametrize("t", [0.002, 0.2, 20.0])
def test_it_comes_to_a_t_of_its_own_whatever_the_first(t):
    run = Run(FedGiA(adaptive=True, t=t), selection=All())
    found = []
    for _ in range(30):
        run.rounds(1)
        found.append(run.server.sigma / (smoothness(run).max() / M))
    assert 0.05 < np.median(found[15:]) < 1.5
    exponents = np.log2(np.array(found) / t)
    assert np.allclose(exponents, np.rint(exponents), rtol=0, atol=1e-9)  # times powers of two


def test_no_theorem_is_certified():
    found = certificate(FedGiA(adaptive=True), None)
    why = "those of FedGiA are about one σ for all rounds"
    assert found.holds is None
    assert found.remarks == [f"no theorem is certified for fedgia with algorithm.adaptive = true: {why}"]
