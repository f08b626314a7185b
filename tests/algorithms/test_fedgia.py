"""FedGiA's t for problems of one's own."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from mpifed import LinearModel
from mpifed.algorithms.fedgia import FedGiA
from mpifed.data.sources.gaussian import Gaussian
from mpifed.federation.participation.selection import Uniform
from mpifed.problems.base import Problem
from mpifed.problems.logistic import Logistic, LogisticLoss
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from tests.helpers.algorithm_runs import M, N, Run, gradients


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


@pytest.mark.parametrize("k0", [1, 4])
def test_fedgia_with_zero_h_is_its_formula(k0):
    """(12) with H = 0: x_i − x = −(ḡ_i + π_i)/σ, hence π_i = −ḡ_i, and from the second step on x_i = x."""
    run = Run(FedGiA(H="zero", k0=k0))
    x, pi, sigma = np.zeros(N), np.zeros((M, N)), run.server.sigma
    for _ in range(10):
        model = run.rounds(1)[-1]
        chosen = run.fed.mask(run.fed.selected)[:, None]
        g = gradients(run, x) / M
        step = -(g + pi) / sigma if k0 == 1 else np.zeros_like(g)
        z, pi = np.where(chosen, x + step - g / sigma, x - g / sigma), -g
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)
    assert np.allclose(run.states().pi, pi, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("H", ["diagonal", "gram"])
def test_fedgia_takes_its_steps_with_one_gradient(H):
    """(12)–(17), client by client."""
    run = Run(FedGiA(H=H, k0=3))
    x, pi, sigma = np.zeros(N), np.zeros((M, N)), run.server.sigma
    for _ in range(4):
        model, z = run.rounds(1)[-1], np.empty((M, N))
        for i, (A, b) in enumerate(run.samples()):
            gram, g = A.T @ A / len(A), A.T @ (A @ x - b) / len(A) / M
            pi[i], z[i] = (pi[i], 0) if i in run.fed.selected else (-g, x - g / sigma)
            for _ in range(3 * (i in run.fed.selected)):
                h = gram if H == "gram" else np.linalg.norm(gram, 2) * np.eye(N)
                xi = x - np.linalg.solve(h / M + sigma * np.eye(N), g + pi[i])
                pi[i] += sigma * (xi - x)
                z[i] = xi + pi[i] / sigma
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


def test_fedgia_takes_sigma_from_the_largest_r():
    run = Run(FedGiA(t=0.3))
    r = max(np.linalg.norm(A, 2) ** 2 / len(A) for A, _ in run.samples())
    assert np.isclose(run.server.sigma, 0.3 * r / M, rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "t"),
    [("least-squares", 0.15), ("logistic", 4 * np.log(8992) / 1024), ("nonconvex-logistic", 4 * np.log(8992) / 1024)],
)
def test_fedgia_takes_t_from_table_iii(problem, t):
    logistic = Problem.build(problem, "problem").logistic_loss
    assert np.isclose(FedGiA().scale(logistic, samples=8992, n=1024), t)
    assert FedGiA(t=7.0).scale(logistic, samples=8992, n=1024) == 7.0
    if problem != "least-squares":
        assert FedGiA().scale(logistic, samples=8992, n=10**6) == 0.025


def lagrangian(run, x, X, pi, sigma):
    """(7) of fedgia."""
    f = [np.sum((A @ xi - b) ** 2) / (2 * len(A)) for (A, b), xi in zip(run.samples(), X, strict=True)]
    return np.sum(f) / M + np.vecdot(X - x, pi).sum() + sigma / 2 * np.sum((X - x) ** 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("t", [6.0, 20.0])
def test_fedgia_lemma_iv_1_the_lagrangian_never_increases(seed, t):
    """(23): with σ = t·r/m >= 6r/m and k0 = 1 it falls by at least (σ/24) Σ (‖Δx‖² + ‖Δx_i‖²)."""
    algorithm = FedGiA(k0=1, t=t, H="diagonal")
    run = Run(algorithm, seed=seed, data_seed=seed, selection=Uniform(share=0.5))
    sigma, x, last = run.server.sigma, np.zeros(N), None
    for k in range(50):
        run.fed.begin(k + 1)
        chosen = run.fed.mask(run.fed.select(x))
        z = run.fed.call(algorithm.update, x, sigma, each=chosen)
        pi = run.states().pi
        X = z - pi / sigma  # (14)
        L = lagrangian(run, x, X, pi, sigma)
        if last is not None:
            change = M * np.sum((x - last[1]) ** 2) + np.sum((X - last[2]) ** 2)
            assert L - last[0] <= -sigma / 24 * change + 1e-12 * abs(L), f"iteration {k}"
        last, x = (L, x, X), z.mean(axis=0)  # (11)
