"""FedDyn: what its clients keep, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.feddyn import FedDyn
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All, Uniform
from tests.helpers.algorithm_runs import N, Run, build, gradients, minimiser

STEP = Constant(a=0.02)


def distance(run):
    x = minimiser(run)
    return np.linalg.norm(run.server.x - x) / np.linalg.norm(x)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("k0", [1, 5])
def test_it_ends_at_the_minimiser_where_fedavg_does_not(k0, share):
    """Uneven clients, each with data of its own; some of them a round, and a local problem far from solved."""
    run = Run(FedDyn(k0=k0, step=STEP, alpha=1.0), selection=Uniform(share=share))
    run.rounds(2500)
    assert distance(run) < 1e-9
    assert run.measure()[1] < 1e-16
    averaging = Run(FedAvg(k0=5, step=STEP), selection=Uniform(share=share))
    averaging.rounds(2500)
    assert distance(averaging) > 1e-3


def test_it_stays_where_clients_keep_their_gradients_at_the_minimiser():
    run = Run(FedDyn(step=STEP))
    x = minimiser(run)
    run.hosts[0].state.h[:] = gradients(run, x)[run.hosts[0].order]
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-10)
    assert np.allclose(run.states().h, gradients(run, x), atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 3, "epochs": 2}], ids=str)
def test_the_server_keeps_the_mean_of_what_all_clients_keep(options):
    run = Run(FedDyn(step=STEP, **options))
    run.rounds(12)
    assert np.linalg.norm(run.server.h) > 1e-3
    assert np.allclose(run.server.h, run.states().h.mean(axis=0), rtol=1e-12, atol=1e-12)


def test_clients_that_solve_their_problem_keep_the_gradient_at_its_solution():
    alpha = 0.5
    run = Run(FedDyn(k0=2000, step=STEP, alpha=alpha), selection=All())
    x, old = run.rounds(1)[-1], run.states().h
    run.rounds(1)
    solved = np.array(
        [
            np.linalg.solve(A.T @ A / len(A) + alpha * np.eye(N), A.T @ b / len(A) + alpha * x + h)
            for (A, b), h in zip(run.samples(), old, strict=True)
        ]
    )
    assert np.allclose(run.states().h, gradients(run, solved), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("key", "value"), [("alpha", 0), ("alpha", "much"), ("k0", 0), ("batch_size", -1)])
def test_wrong_options_are_refused(key, value):
    with pytest.raises(UserError, match=rf"^algorithm\.{key} = .* is wrong: it must be a "):
        build("feddyn", {key: value})
