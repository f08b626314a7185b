"""AD-ADMM: why duals stay with the clients, and the conditions of its convergence."""

import math

import numpy as np
import pytest

from mpifed.algorithms.ad_admm import ADADMM
from mpifed.theory.ad_admm import certificate, least_penalty, least_proximal
from tests.oracles import ad_admm, event_loop
from tests.oracles.problems import LeastSquares, mean_value
from tests.theory.test_theorems import KNOWN

SECONDS = np.exp(np.random.default_rng(5).standard_normal(8))  # of a client, from model to upload


def clients():
    rng = np.random.default_rng(3)
    for _ in SECONDS:
        A = rng.standard_normal((9, 4)) * np.exp(rng.uniform(-1, 0.5, 4))
        yield LeastSquares(A, A @ rng.standard_normal(4) + rng.standard_normal(9))


class MovedByTheServer(ad_admm.Method):
    """The same, but that the server moves all λ_i in every step, with the x_i that it has."""

    def begin(self, i):
        before = self.pi[i]
        super().begin(i)
        self.pi[i] = before
        return self.own[i]

    def mean(self):
        x = sum(own + pi / self.rho for own, pi in zip(self.z, self.pi, strict=True)) / self.m
        self.pi = [pi + self.rho * (own - x) for own, pi in zip(self.z, self.pi, strict=True)]
        return x


def gap(kind, rho):
    """f − f* after 300 asynchronous steps, over f at the start."""
    every = list(clients())
    method = kind(every, rho=rho)
    event_loop.run(method, lambda i, count: SECONDS[i], 300, arrivals=1)
    best = np.linalg.solve(sum(f.majorant for f in every), sum(f.A.T @ f.b / f.d for f in every))
    end, least, start = (mean_value(every, [x] * len(every)) for x in (method.x, best, 0 * best))
    return (end - least) / start


@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_duals_that_the_server_moves_diverge_where_those_of_the_clients_converge(rho):
    assert abs(gap(ad_admm.Method, rho)) < 1e-2
    assert gap(MovedByTheServer, rho) > 1e3


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
