"""FedNova: equal work makes it FedAvg, unequal work does not move its limit."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fednova import FedNova
from mpifed.algorithms.optimizers import Momentum
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All
from mpifed.federation.timing.system import System
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, quadratics, systems
from tests.oracles import fednova as oracle
from tests.oracles.problems import LeastSquares


def partial(run, steps):
    """Let client i of the run have time for steps[i] and a half of its local steps."""
    algorithm, sizes = run.algorithm, run.data.sizes
    table = {"speed": 1.0, "deadline": 1.0, "partial": True}
    devices = System.build(table, "system").devices(0, sizes, np.zeros(10), algorithm, 1)
    devices.speed = algorithm.work(sizes) / algorithm.local_steps(sizes) * (np.array(steps) + 0.5)
    run.fed.devices = devices
    return run


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 4}, {"optimizer": Momentum(beta=0.8)}, {"scale": "1/m", "epochs": 2}], ids=str
)
def test_with_equal_work_it_is_fedavg(options):
    nova, averaging = Run(FedNova(**options)), Run(FedAvg(**options))
    for _ in range(8):
        right, found = averaging.rounds(1)[-1], nova.rounds(1)[-1]
        assert np.abs(found - right).max() <= 1e-14 * np.abs(right).max()


@pytest.mark.parametrize("momentum", [{}, {"optimizer": {"name": "momentum", "beta": 0.7}}], ids=["plain", "momentum"])
def test_unequal_work_is_the_oracle_to_rounding(momentum):
    steps = [3, 1, 5, 2, 4, 5, 1, 2, 3, 4, 5, 1]
    run = partial(Run(build("fednova", {"k0": 5, "step": {"name": "log2", "a": 0.05}, **momentum})), steps)
    models, chosen = [], []
    for _ in range(6):
        models.append(run.rounds(1)[-1])
        chosen.append(run.fed.selected.tolist())
        assert run.fed.local_steps.tolist() == [steps[i] for i in run.fed.selected]
    clients = [LeastSquares(A, b) for A, b in run.samples()]
    right = oracle.run(clients, chosen, k0=5, step={"name": "log2", "a": 0.05}, steps=steps, **momentum)["x"][1:]
    assert np.abs(np.array(models) - right).max() <= 1e-12 * np.abs(right).max()


def test_where_fedavg_goes_with_unequal_work_and_where_fednova_goes():
    """With M_i = I − (I − γQ_i)^τ_i, and x_i the minimiser of f_i:  FedAvg ends at (Σ M_i) x = Σ M_i x_i, for small γ
    the minimiser of Σ τ_i f_i; FedNova has M_i/τ_i there, for small γ the minimiser of Σ f_i."""
    steps, gamma = np.array([1, 8, 2, 5, 1]), 0.002
    Q, b = systems(5, 4, spread=2.0)
    own = np.linalg.solve(Q, b[..., None])[..., 0]
    optimum = np.linalg.solve(Q.sum(axis=0), b.sum(axis=0))
    pulled = np.linalg.solve(np.einsum("i,ijk", steps, Q), steps @ b)
    matrices = np.array(
        [np.eye(4) - np.linalg.matrix_power(np.eye(4) - gamma * q, tau) for q, tau in zip(Q, steps, strict=True)]
    )

    def limit(factors):
        weighed = factors[:, None, None] * matrices
        return np.linalg.solve(weighed.sum(axis=0), np.einsum("ijk,ik->j", weighed, own))

    def end(algorithm):
        run = partial(Run(algorithm, "quadratic", selection=All(), data=quadratics(Q, b)), steps)
        return run.rounds(6000)[-1]

    averaging = end(FedAvg(k0=8, step=Constant(a=gamma)))
    nova = end(FedNova(k0=8, step=Constant(a=gamma)))
    assert np.allclose(averaging, limit(np.ones(5)), rtol=1e-7)
    assert np.allclose(nova, limit(1 / steps), rtol=1e-7)
    assert np.linalg.norm(averaging - pulled) < 0.05 * np.linalg.norm(pulled - optimum)
    assert np.linalg.norm(nova - optimum) < 0.05 * np.linalg.norm(pulled - optimum)


def test_epochs_of_uneven_clients_are_unequal_work():
    """With single samples a client takes d_i steps an epoch: with small steps FedAvg goes along Σ d_i ∇f_i."""
    options = {"epochs": 2, "batch_size": 1, "step": Constant(a=1e-7)}
    nova, averaging = (Run(kind(**options), selection=All()) for kind in (FedNova, FedAvg))
    steps, g = 2 * nova.data.sizes, gradients(nova, np.zeros(N))
    assert np.array_equal(nova.algorithm.local_steps(nova.data.sizes), steps)
    assert len(set(steps)) > 3
    assert np.allclose(nova.rounds(1)[-1], -1e-7 * steps.mean() * g.mean(axis=0), rtol=1e-4)
    assert np.allclose(averaging.rounds(1)[-1], -1e-7 * (steps[:, None] * g).mean(axis=0), rtol=1e-4)


def test_clients_upload_one_number_more():
    run = Run(FedNova(), selection=All())
    run.rounds(3)
    assert run.fed.ledger.bytes_up == 3 * M * 8 * (N + 1)
    assert run.fed.ledger.bytes_down == 3 * M * 8 * N


@pytest.mark.parametrize("optimizer", ["adam", "adamw", {"name": "momentum", "weight_decay": 0.1}], ids=str)
def test_an_optimizer_that_is_not_linear_is_refused(optimizer):
    with pytest.raises(
        UserError, match=r"optimizer = \w+ is wrong: fednova divides by the weights of a sum of gradients"
    ):
        build("fednova", {"optimizer": optimizer})


def test_last_models_of_absent_clients_are_not_averaged():
    with pytest.raises(UserError, match=r'^algorithm\.aggregate = "all" is wrong'):
        build("fednova", {"aggregate": "all"})


def test_a_study_in_which_slow_clients_do_less(tmp_path):
    study = {
        "data": {"clients": 12, "features": 6},
        "selection": "all",
        "rounds": 400,
        "stop": {"diverged": 0},
        "system": {"speed": {"name": "lognormal", "median": 3000, "sigma": 0.8}, "deadline": 0.2, "partial": True},
    }
    step = {"name": "constant", "a": 0.002}
    nova, averaging = (
        mpifed.run(study | {"algorithm": {"name": name, "k0": 20, "step": step}}) for name in ("fednova", "fedavg")
    )
    assert (nova.rounds["shortened"][1:] > 2).all()
    assert (nova.rounds["late"] == 0).all()
    assert nova.rounds["grad_norm_sq"][-1] < 0.1 * averaging.rounds["grad_norm_sq"][-1]
