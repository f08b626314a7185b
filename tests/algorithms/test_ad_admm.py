"""AD-ADMM: its fixed point, the order in which clients arrive, and why duals stay with the clients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.ad_admm import ADADMM
from mpifed.core.errors import UserError
from mpifed.theory.ad_admm import certificate, least_penalty, least_proximal
from tests.helpers.algorithm_runs import M, Run, minimiser
from tests.oracles import event_loop
from tests.oracles.problems import LeastSquares
from tests.theory.test_theorems import KNOWN

SECONDS = np.exp(np.random.default_rng(5).standard_normal(8))  # of a client, from model to upload


def clients():
    rng = np.random.default_rng(3)
    found = []
    for _ in SECONDS:
        A = rng.standard_normal((9, 4)) * np.exp(rng.uniform(-1, 0.5, 4))
        found.append(LeastSquares(A, A @ rng.standard_normal(4) + rng.standard_normal(9)))
    return found


def test_the_minimiser_with_the_gradients_there_as_duals_is_a_fixed_point():
    run = Run(ADADMM(gamma=0.4))
    x = minimiser(run)
    host, rho = run.hosts[0], run.server.rho
    gradients = np.array([A.T @ (A @ x - b) / len(A) for A, b in run.samples()])[host.order]
    host.state = type(host.state)(lam=-gradients, w=np.tile(x, (M, 1)), z=x - gradients / rho)
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(3)[-1], x, rtol=1e-10)


def study(**asynchronous):
    table = {
        "rounds": 4000,
        "data": {"name": "linreg-noniid", "clients": 12, "features": 6, "least": 8, "most": 25},
        "algorithm": {"name": "ad-admm"},
        "selection": {"name": "all"},
        "evaluate": {"every": 100},
        "stop": {"gradient": 1e-20},
        "system": {"speed": {"name": "lognormal", "median": 50, "sigma": 1.5}, "passes": 3},
    }
    return table | ({"asynchronous": asynchronous} if asynchronous else {})


@pytest.mark.parametrize("arrivals", [1, 5, 12])
def test_it_ends_at_the_minimiser_however_old_uploads_are(arrivals):
    result = mpifed.run(study(arrivals=arrivals), progress=False)
    assert result.rounds["grad_norm_sq"][-1] < 1e-16
    assert result.rounds["staleness_max"].max() > 20 or arrivals > 1


def test_all_arrivals_are_synchronous_rounds():
    table = study() | {"rounds": 30, "evaluate": {"every": 1}}
    together = mpifed.run(table | {"asynchronous": {"arrivals": 12}}, progress=False)
    assert np.allclose(together.x, mpifed.run(table, progress=False).x, rtol=1e-12, atol=1e-14)
    assert not together.rounds["staleness"].any()


class Consensus:
    """ADMM whose duals are moved by the clients, or by the server in every step."""

    def __init__(self, server_moves, rho):
        self.clients, self.server_moves, self.rho = clients(), server_moves, rho
        self.m, self.x = len(self.clients), np.zeros(4)
        self.own, self.lam = np.zeros((2, self.m, 4))

    def begin(self, i):
        f = self.clients[i]
        pull = self.rho * self.x - self.lam[i] + f.A.T @ f.b / f.d
        own = np.linalg.solve(f.majorant + self.rho * np.eye(4), pull)
        return own, self.lam[i] + self.rho * (own - self.x)

    def step(self, uploads, ages):
        for i, (own, lam) in uploads.items():
            self.own[i] = own
            self.lam[i] = self.lam[i] if self.server_moves else lam
        self.x = (self.own + self.lam / self.rho).mean(axis=0)
        if self.server_moves:
            self.lam = self.lam + self.rho * (self.own - self.x)

    def gap(self):
        """f − f* after 600 asynchronous steps."""
        best = np.linalg.solve(sum(f.majorant for f in self.clients), sum(f.A.T @ f.b / f.d for f in self.clients))
        event_loop.run(self, lambda i, count: SECONDS[i], 600, arrivals=1)
        return sum(f.value(self.x) - f.value(best) for f in self.clients) / self.m


@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_duals_that_the_server_moves_diverge_where_those_of_the_clients_converge(rho):
    first = sum(one.value(np.zeros(4)) for one in clients()) / len(SECONDS)
    assert abs(Consensus(False, rho).gap()) < 1e-3 * first
    assert Consensus(True, rho).gap() > 1e6 * first


def test_the_conditions_of_its_convergence_are_those_of_the_proof():
    assert least_penalty(1.0, False) == pytest.approx((3 + math.sqrt(17)) / 2)
    assert least_penalty(1.0, True) == pytest.approx((2 + math.sqrt(12)) / 2)
    assert least_proximal(2.0, m=10, S=4, age=3) == pytest.approx((4 * 5 * 9 - 20) / 2)
    assert least_proximal(2.0, m=10, S=4, age=0) == -10
    assert least_proximal(2.0, m=10, S=4, age=math.inf) == math.inf


def test_its_certificate_holds_with_the_constants_that_it_asks_for():
    L, late = float(np.max(KNOWN.r)), KNOWN._replace(selection="arrivals", oldest=3.0)
    rho = 1.01 * least_penalty(L, True)
    gamma = 1.01 * least_proximal(rho, KNOWN.m, KNOWN.m + 1, 3.0)
    assert certificate(ADADMM(rho=rho, gamma=gamma), late).holds
    assert certificate(ADADMM(rho=0.9 * rho, gamma=gamma), late).holds is False
    assert certificate(ADADMM(rho=rho, gamma=0.9 * gamma), late).holds is False
    assert certificate(ADADMM(rho=rho, gamma=gamma), late._replace(oldest=math.inf)).holds is False
    assert certificate(ADADMM(rho=rho), KNOWN._replace(oldest=0.0)).holds


@pytest.mark.parametrize(("option", "value"), [("rho", 0.0), ("rho", -1.0), ("gamma", -0.1)])
def test_options_that_make_no_sense_are_refused_by_name(option, value):
    with pytest.raises(UserError, match=f"algorithm.{option}"):
        mpifed.run(study(), {f"algorithm.{option}": value})
