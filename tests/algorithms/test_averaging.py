"""Methods that average local steps: where they end, what an extrapolation gains, and what is charged."""

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms import FedAvg, FedNova, FedOpt
from mpifed.algorithms.parts.server_optimizers import FedExP
from mpifed.algorithms.parts.step_sizes import ConstantStep
from mpifed.extend import Compressor, Pool, stream
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.federation.participation.selection import All, UniformSelection
from tests.helpers.algorithm_runs import M, N, Run, build, gradients
from tests.helpers.devices import devices
from tests.oracles import local_steps
from tests.oracles.problems import LeastSquares
from tests.oracles.synchronous import rounds


def partial(run, steps):
    """Let client i of the run have time for steps[i] and a half of its local steps."""
    algorithm, sizes = run.algorithm, run.data.sizes
    table = {"speed": 1.0, "deadline": 1.0, "partial": True}
    schedule = DeviceRounds(devices(sizes, algorithm=algorithm, **table), algorithm, 1)
    each = algorithm.sample_gradients(sizes) / algorithm.local_steps(sizes)
    schedule.devices.speed = each * (np.array(steps) + 0.5)
    run.fed.schedule = schedule
    return run


@pytest.mark.parametrize("momentum", [{}, {"optimizer": {"name": "momentum", "beta": 0.7}}], ids=["plain", "momentum"])
def test_unequal_work_of_fednova_is_the_oracle_to_rounding(momentum):
    steps = [3, 1, 5, 2, 4, 5, 1, 2, 3, 4, 5, 1]
    options = {"k0": 5, "step": {"name": "log2", "a": 0.05}, **momentum}
    run = partial(Run(build("fednova", options)), steps)
    models, chosen = [], []
    for _ in range(6):
        models.append(run.rounds(1)[-1])
        chosen.append(run.fed.selected.tolist())
        assert run.fed.local_steps.tolist() == [steps[i] for i in run.fed.selected]
    clients = [LeastSquares(A, b) for A, b in run.samples()]
    right = np.array([x for x, _ in rounds(local_steps.FedNova(clients, steps=steps, **options), chosen)])[1:]
    assert np.abs(np.array(models) - right).max() <= 1e-12 * np.abs(right).max()


def test_epochs_of_uneven_clients_are_unequal_work():
    """With single samples a client takes d_i steps an epoch: with small steps FedAvg goes along Σ d_i ∇f_i."""
    options = {"epochs": 2, "batch_size": 1, "step": ConstantStep(a=1e-7)}
    nova, averaging = (Run(kind(**options), selection=All()) for kind in (FedNova, FedAvg))
    steps, g = 2 * nova.data.sizes, gradients(nova, np.zeros(N))
    assert np.array_equal(nova.algorithm.local_steps(nova.data.sizes), steps)
    assert len(set(steps)) > 3
    assert np.allclose(nova.rounds(1)[-1], -1e-7 * steps.mean() * g.mean(axis=0), rtol=1e-4)
    assert np.allclose(averaging.rounds(1)[-1], -1e-7 * (steps[:, None] * g).mean(axis=0), rtol=1e-4)


def test_the_step_of_fedexp_is_never_below_one_and_often_above():
    run, steps = Run(FedOpt(step=ConstantStep(a=0.02), server=FedExP(eps=0.0))), []
    for _ in range(60):
        run.rounds(1)
        steps.append(run.row()["server_step"])
    assert min(steps) >= 1.0
    assert max(steps) > 2.0
    assert FedExP(eps=0.0).rate(np.zeros(3), 0.0) == 1.0  # where clients do not move


def test_marina_charges_whole_gradients_when_the_coin_says_so():
    table = {"compressor": {"name": "randk", "k": 3}, "p": 0.4}
    run, rounds = Run(build("marina", table), selection=UniformSelection(count=4)), 30
    run.rounds(rounds)
    whole = sum(stream(0, "server", round).random() < 0.4 for round in range(1, rounds + 1))
    assert 0 < whole < rounds
    bits = 64 * N * M * whole + (64 * 3 + 64) * 4 * (rounds - whole)
    ledger = run.fed.ledger
    assert (ledger.bits_up, ledger.bytes_up) == (bits, bits // 8)
    assert ledger.bytes_down == 8 * N * (M * whole + 2 * 4 * (rounds - whole))


def test_a_compressor_of_ones_own_is_refused_where_it_says_nothing_of_its_error():
    class Silent(Compressor, tag="silent"):
        def message(self, rows, rngs, symmetric):
            return rows

        def bits(self, N, itemsize, symmetric=False):
            return 1

    with pytest.raises(UserError, match="silent is neither contractive nor unbiased"):
        Silent().contraction(4)


@pytest.mark.parametrize(
    ("a", "right", "within"),
    [(0.0, 0.8, 0.03), (0.5, 1 - 2 / (1 + 9 * np.sqrt(10)), 0.02)],
    ids=["equal weights", "old changes count less"],
)
def test_the_limit_of_fedbuff_weighs_clients_by_how_often_they_arrive(a, right, within):
    """f_1 = ½(x − 1)² and f_2 = ½(x + 1)², which has 9 times as many samples: nine uploads for one.

    With equal weights the mean of 1 and −1 is 0.8. Client 2 is 9 rounds old: with 1/√10 its share falls from 1/10 to
    1/29.5 or so.
    """
    data = Pool(np.ones((10, 1)), np.r_[1.0, -np.ones(9)], None, np.array([1, 9]))
    algorithm = build("fedbuff", {"k0": 1, "lr": 0.02, "a": a})
    run = Run(algorithm, data=data, system={"speed": 1.0}, asynchronous={"arrivals": 1})
    assert run.rounds(400)[-1] == pytest.approx(right, abs=within)


@pytest.mark.parametrize("q", [12.0, pytest.param(300.0, marks=pytest.mark.slow), 1e5])
@pytest.mark.parametrize("unit", [1e-3, pytest.param(1.0, marks=pytest.mark.slow), 1e3])
def test_a_large_q_is_computed_from_the_losses_over_the_largest(q, unit):
    """Against a loop whose powers have the same divisor; ‖d‖ and f have units, which must not matter."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 10, 3))
    b = unit * (A @ [1.0, 2.0, -1.0] + rng.standard_normal((4, 10)) * [[0.1], [0.5], [1.0], [2.0]])
    study = {"data": mpifed.arrays(A.reshape(40, 3), b.ravel(), [10] * 4), "problem": "least-squares", "rounds": 12}
    method = {"name": "q-fedavg", "q": q, "lr": 0.05, "k0": 2}
    result = mpifed.run(study, algorithm=method, selection="all")
    x = np.zeros(3)
    for _ in range(12):
        f = ((A @ x - b) ** 2).mean(axis=1) / 2
        w = np.tile(x, (4, 1))
        for _ in range(2):
            w -= 0.05 * np.einsum("ijk,ij->ik", A, np.einsum("ijk,ik->ij", A, w) - b) / 10
        d = (x - w) / 0.05
        shares = np.exp(q * np.log(f / f.max()))
        x = x - shares @ d / np.sum(shares * (q * (d**2).sum(axis=1) / f + 1 / 0.05))
    np.testing.assert_allclose(result.x, x, rtol=1e-10)
    fair = result.rounds["fair_objective"]
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(fair[-1], np.mean(f ** (q + 1)) / (q + 1), rtol=0.5)
    assert mpifed.run(study, algorithm=method, selection="all").x.tobytes() == result.x.tobytes()


def test_a_schedule_that_comes_down_to_zero_leaves_models_and_control_variates_as_they_are():
    run = Run(build("scaffold", {"step": {"name": "cosine", "a": 0.05, "over": 2}}), selection=All())
    models = run.rounds(2)
    before = run.states().c
    assert np.abs(before).max() > 0
    assert np.array_equal(run.rounds(2)[-1], models[-1])
    assert np.array_equal(run.states().c, before)
