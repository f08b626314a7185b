"""FedOpt: FedAvg's clients, and what the server makes of their mean step."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedopt import FedOpt
from mpifed.algorithms.server_optimizers import Adagrad, Adam, FedExP, Momentum, Yogi
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, minimiser, quadratics

STEP = Constant(a=0.02)


@pytest.mark.parametrize("options", [{}, {"epochs": 2, "batch_size": 5}, {"scale": "1/m"}], ids=str)
def test_momentum_without_memory_and_with_step_one_is_fedavg(options):
    fedavg, fedopt = Run(FedAvg(**options)), Run(FedOpt(server=Momentum(lr=1.0, beta=0.0), **options))
    for _ in range(6):
        right, found = fedavg.rounds(1)[-1], fedopt.rounds(1)[-1]
        assert np.abs(found - right).max() <= 1e-15 * np.abs(right).max()


def test_clients_of_fedexp_upload_one_number_more():
    run = Run(FedOpt(server=FedExP()))
    run.rounds(1)
    trained = len(run.fed.selected)
    assert run.fed.ledger.bytes_up == 8 * trained * (N + 1)
    assert run.fed.ledger.bytes_down == 8 * trained * N


def test_the_step_of_fedexp_is_never_below_one_and_often_above():
    run, steps = Run(FedOpt(step=STEP, server=FedExP(eps=0.0))), []
    for _ in range(60):
        run.rounds(1)
        steps.append(run.algorithm.report(run.server, {}, M)["server_step"])
    assert min(steps) >= 1.0
    assert max(steps) > 2.0


def test_fedexp_of_one_client_is_fedavg():
    """‖w − x‖² / (2‖w − x‖²) is 1/2, so η is 1."""
    one = Uniform(count=1)
    found = Run(FedOpt(server=FedExP(eps=0.0)), selection=one).rounds(5)
    assert np.allclose(found, Run(FedAvg(), selection=one).rounds(5), rtol=1e-13, atol=1e-15)


def test_fedexp_stays_where_clients_do_not_move():
    delta = np.zeros(3)
    assert FedExP(eps=0.0).rate(delta, 0.0) == 1.0


def test_the_first_adaptive_step_by_hand():
    """All clients, one gradient step of size a: Δ = −a∇f(0)."""
    g = gradients(Run(FedAvg()), np.zeros(N)).mean(axis=0)
    delta, lr, b1, b2, tau = -0.02 * g, 0.3, 0.6, 0.8, 0.01
    v = {
        Adagrad: tau**2 + delta**2,
        Adam: b2 * tau**2 + (1 - b2) * delta**2,
        Yogi: tau**2 - (1 - b2) * delta**2 * np.sign(tau**2 - delta**2),
    }
    for kind, square in v.items():
        rule = kind(lr=lr, beta1=b1, beta2=b2, tau=tau)
        run = Run(FedOpt(k0=1, step=STEP, server=rule), selection=Uniform(share=1.0))
        right = lr * (1 - b1) * delta / (np.sqrt(square) + tau)
        assert np.allclose(run.rounds(1)[-1], right, rtol=1e-12, atol=1e-15), kind


@pytest.mark.parametrize("rule", [Momentum(), Adagrad(), Adam(lr=0.01), Yogi(lr=0.01)], ids=repr)
def test_with_all_clients_and_one_step_each_ends_at_the_minimiser(rule):
    """There Δ = −a∇f(x): its only zero is the minimiser."""
    run = Run(FedOpt(k0=1, step=Constant(a=0.1), server=rule), selection=Uniform(share=1.0))
    x = run.rounds(3000)[-1]
    assert np.allclose(x, minimiser(run), rtol=1e-6, atol=1e-6)


def test_fedexp_is_faster_where_all_clients_share_a_minimiser():
    """f_i = ½⟨a_i, x − x*⟩², the case of the paper's Theorem 1: every client has a plane of minimisers through x*."""
    A, right = np.random.default_rng(3).standard_normal((M, N)), np.linspace(-1, 1, N)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    Q = A[:, :, None] * A[:, None, :]
    gaps = {}
    for name, algorithm in {
        "fedavg": FedAvg(step=Constant(a=0.5)),
        "fedexp": FedOpt(step=Constant(a=0.5), server=FedExP(eps=0.0)),
    }.items():
        run = Run(algorithm, "quadratic", data=quadratics(Q, Q @ right), selection=Uniform(share=1.0))
        gaps[name] = np.linalg.norm(run.rounds(60) - right, axis=1)
    assert (np.diff(gaps["fedexp"]) <= 0).all()
    assert gaps["fedexp"][-1] < 0.5 * gaps["fedavg"][-1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"server": "admm"}, "unknown server 'admm'"),
        ({"server": {"name": "momentum", "beta": 1.0}}, r"algorithm\.server\.beta = 1\.0 is wrong"),
        ({"server": {"name": "momentum", "lr": 0.0}}, r"algorithm\.server\.lr = 0\.0 is wrong"),
        ({"server": {"name": "adam", "tau": 0.0}}, r"algorithm\.server\.tau = 0\.0 is wrong"),
        ({"server": {"name": "yogi", "beta2": 1.0}}, r"algorithm\.server\.beta2 = 1\.0 is wrong"),
        ({"server": {"name": "adam", "betas": [0.9, 0.9]}}, "betas cannot be set: write beta1 and beta2"),
        ({"server": {"name": "fedexp", "eps": -1.0}}, r"algorithm\.server\.eps = -1\.0 is wrong"),
        ({"server": {"name": "fedexp", "lr": 1.0}}, r"unknown key 'algorithm\.server\.lr'"),
        ({"aggregate": "all"}, r'algorithm\.aggregate = "all" is wrong: it must be "chosen"'),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        build("fedopt", options)
