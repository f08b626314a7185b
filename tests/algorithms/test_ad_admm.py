"""AD-ADMM: its fixed point, the order in which clients arrive, and why duals stay with the clients."""

import math

import numpy as np
import pytest

from mpifed.algorithms.ad_admm import ADADMM
from mpifed.theory.ad_admm import certificate, least_penalty, least_proximal
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
