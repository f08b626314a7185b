"""Power-of-choice and greedy selections: who is ahead, what it costs, and what a uniform part is for."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.federation.participation.scored import Greedy, PowerOfChoice
from mpifed.federation.timing.system import System
from tests.helpers.algorithm_cases import SETTINGS, start
from tests.helpers.algorithm_runs import M, N, Run, build, quadratics, same
from tests.helpers.dual_methods import Dual


def losses(run, x):
    return np.array([np.mean((A @ x - b) ** 2) / 2 for A, b in run.samples()])


def test_power_of_choice_takes_the_largest_losses_among_the_candidates():
    run = start(build("fedavg", SETTINGS["fedavg"]), selection=PowerOfChoice(count=3, candidates=7))
    for round in range(1, 7):
        f = losses(run, run.server.x)
        run.rounds(1)
        pool = run.selector.select(round, 0)
        assert np.array_equal(run.fed.selected, np.sort(pool[np.argsort(-f[pool], kind="stable")[:3]]))


def test_candidates_of_power_of_choice_are_charged_the_model_and_one_number():
    run = start(build("scaffold", SETTINGS["scaffold"]), selection=PowerOfChoice(count=4, candidates=9, batch_size=3))
    run.rounds(2)
    ledger = run.fed.ledger
    assert ledger.bytes_down == 2 * 8 * (9 * N + 4 * 2 * N)
    assert ledger.bytes_up == 2 * 8 * (9 + 4 * 2 * N)


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_greedy_takes_the_longest_steps_and_one_other(name):
    run = start(build(name), selection=Greedy(count=4, candidates=8))
    dual = Dual(run.data)
    for round in range(1, 7):
        x, before = run.server.x, run.states()
        run.rounds(1)
        if name == "accfeddcd":  # its first selection is at v, which the round makes
            continue
        pool = run.selector.select(round, 0)
        w = np.matvec(dual.inverse, before.y + dual.b)
        away = np.linalg.norm(w - x, axis=1)
        ahead = pool[np.argsort(-away[pool], kind="stable")[:3]]
        assert set(ahead) < set(run.fed.selected)
        assert len(run.fed.selected) == 4
        assert np.allclose(run.states().w[pool], w[pool], rtol=1e-9, atol=1e-12)  # candidates keep w_i


def test_with_a_scaling_of_their_own_steps_are_measured_in_its_norm():
    run = start(build("feddcd", {"scaling": "own"}), selection=Greedy(count=2, uniform=0))
    dual = Dual(run.data)
    own = np.linalg.eigvalsh(dual.Q)[:, 0]
    for _ in range(5):
        x, y = run.server.x, run.states().y
        run.rounds(1)
        score = np.sqrt(own) * np.linalg.norm(np.matvec(dual.inverse, y + dual.b) - x, axis=1)
        assert set(run.fed.selected) == set(np.argsort(-score)[:2])


@pytest.mark.parametrize("solver", [{"name": "newton"}, {"name": "gd", "steps": 3}])
@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_greedy_has_the_same_bits_on_any_number_of_hosts(name, solver):
    algorithm = build(name, {"solver": solver})
    greedy = Greedy(count=4, candidates=9, uniform=2)
    runs = [start(algorithm, selection=greedy, cuts=cuts) for cuts in (None, (0, 1, 2, 11, M), range(M + 1))]
    models = [run.rounds(4).tobytes() for run in runs]
    assert len(set(models)) == 1
    assert all(same(run.states(), runs[0].states()) for run in runs)
    assert all(vars(run.fed.ledger) == vars(runs[0].fed.ledger) for run in runs)


def test_scores_are_charged_and_take_the_time_of_a_solution():
    run = start(build("feddcd", {"solver": {"name": "gd", "steps": 3}}), selection=Greedy(count=4, candidates=9))
    system = System.build({"speed": {"name": "constant", "value": 10.0}}, "system")
    sizes, fed = run.data.sizes, run.fed
    fed.devices = system.devices(0, sizes, run.server.x, run.algorithm, 4)
    run.rounds(1)
    assert fed.ledger.bytes_down == 8 * (9 * N + 4 * N)
    assert fed.ledger.bytes_up == 8 * (9 + 4 * N)
    work = 3 * sizes / 10.0
    pool = run.selector.select(1, 0)
    assert np.isclose(fed.devices.seconds, work[pool].max() + work[fed.selected].max())


def test_the_uniform_part_favours_nobody_that_is_not_ahead():
    run = start(build("feddcd", {"eta": 1e-12}), selection=Greedy(count=3, uniform=1))
    times = np.zeros(M)
    run.rounds(1)
    for _ in range(600):
        x, w = run.server.x, run.states().w
        ahead = np.argsort(-np.linalg.norm(w - x, axis=1), kind="stable")[:2]
        run.rounds(1)
        others = np.setdiff1d(run.fed.selected, ahead)
        assert len(others) == 1
        times[others] += 1
    assert times[times > 0].min() > 0


def twins():
    """Two pairs of equal clients: f_0 = f_1 and f_2 = f_3."""
    centre = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    return quadratics(np.tile(np.eye(2), (4, 1, 1)), centre)


def test_without_a_uniform_part_twins_stop_all_progress():
    """The two that are furthest from the model agree, so their dual variables stay; then it is the other two's turn."""
    gaps = {}
    for uniform in (0, 1):
        run = Run(build("feddcd"), "quadratic", data=twins(), selection=Greedy(count=2, uniform=uniform))
        run.rounds(40)
        gaps[uniform] = Dual(run.data).gap(run.states().y)
    assert gaps[0] == Dual(twins()).gap(np.zeros((4, 2))) > 1
    assert gaps[1] < 1e-6


def test_more_uniform_clients_than_are_selected_are_refused():
    with pytest.raises(
        UserError, match=r"^selection\.uniform = 2 is wrong: it must be less than the 2 selected clients$"
    ):
        Greedy(count=2, uniform=2).selector(0, 9, 1)


@pytest.mark.parametrize("name", ["fedavg", "fedgia", "scaffold"])
def test_greedy_refuses_methods_without_a_dual_step(name):
    with pytest.raises(UserError, match=rf'^selection\.name = "greedy" is wrong: clients of {name} have no dual step'):
        Greedy().verify(build(name), None, 9)
    Greedy().verify(build("feddcd"), None, 9)
