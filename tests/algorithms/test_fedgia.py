"""FedGiA's t for problems of one's own."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from mpifed import LinearModel
from mpifed.algorithms.fedgia import FedGiA
from mpifed.data.sources.gaussian import Gaussian
from mpifed.problems.logistic import Logistic, LogisticLoss
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from tests.helpers.algorithm_runs import M, N, Run


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
