"""Selections by scores: who is ahead, what it costs, and what a uniform part is for."""

from itertools import combinations

import numpy as np
import pytest

from mpifed.features.selection_laws.feature import Greedy, PowerOfChoice
from mpifed.federation.participation.selection import Biased
from mpifed.federation.request import Request
from tests.helpers.algorithm_cases import SETTINGS, VECTORS, Still, start
from tests.helpers.algorithm_runs import SOURCES, M, N, Run, build, gradients, quadratics
from tests.helpers.dual_methods import Dual


def largest(scores, pool, count):
    """Of the clients ``pool`` those with the largest scores, of equal ones the first."""
    return np.sort(pool[np.argsort(-scores[pool], kind="stable")[:count]])


def own_gradients(run, pull=20.0):
    """‖∇f_i(x)‖, of methods with personal models θ_i that of their local objective, ‖∇f_i(θ_i) + λ(θ_i − x)‖."""
    theta = getattr(run.states(), "theta", np.tile(run.server.x, (M, 1)))
    return np.linalg.norm(gradients(run, theta) + pull * (theta - run.server.x), axis=1)


def losses(run):
    return np.array([np.mean((A @ run.server.x - b) ** 2) / 2 for A, b in run.samples()])


@pytest.mark.parametrize(
    ("name", "rule", "scored"),
    [
        ("fedavg", Biased(count=3, candidates=7, batch_size=0), own_gradients),
        ("flame", Biased(count=3, candidates=7, batch_size=0), own_gradients),
        ("pfedme", Biased(count=3, batch_size=0), lambda run: own_gradients(run, 5.0)),
        ("fedavg", Biased(count=4), own_gradients),  # at most 25 samples: a batch is all of them
        ("fedavg", PowerOfChoice(count=3, candidates=7), losses),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_the_largest_scores_among_the_candidates_are_selected(name, rule, scored):
    run = start(build(name, SETTINGS[name]), selection=rule)
    for round in range(1, 7):
        scores = scored(run)
        run.rounds(1)
        pool = run.selector.select(round, 0)
        assert len(pool) == (rule.candidates or M)
        assert np.array_equal(run.fed.selected, largest(scores, pool, rule.count))


def test_ties_go_to_the_first_client():
    data = SOURCES["least-squares"].load(0, "float64")
    run = Run(build("fedavg"), Still(), data=data, selection=Biased(count=3, candidates=7))
    for round in range(1, 5):
        run.rounds(1)
        assert np.array_equal(run.fed.selected, run.selector.select(round, 0)[:3])


def test_biased_selection_asks_a_random_mini_batch_of_each_candidate():
    """The norm of the mean of 4 samples' gradients: one of the values that 4 of d_i samples can give."""
    run = Run(build("fedavg", SETTINGS["fedavg"]), selection=Biased(count=M, batch_size=4))
    host = run.hosts[0]
    found = [host.handle(Request("score", (run.server.x, 4), key=(1, k)))[0].rows[:, 0] for k in range(3)]
    assert all(len(set(values)) > 1 for values in zip(*found, strict=True))  # drawn anew at every call
    i = int(np.argmin(run.data.sizes))
    A, b = run.samples()[i]
    possible = [np.linalg.norm(A[list(rows)].T @ -b[list(rows)]) / 4 for rows in combinations(range(len(A)), 4)]
    assert all(np.isclose(possible, values[i], rtol=1e-12).any() for values in found)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *[(name, Biased(count=4, candidates=9)) for name in ("fedavg", "flame", "scaffold")],
        ("scaffold", PowerOfChoice(count=4, candidates=9, batch_size=3)),
        ("feddcd", Greedy(count=4, candidates=9)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_candidates_are_charged_the_model_and_one_number(name, rule):
    run = start(build(name, SETTINGS[name]), selection=rule)
    run.rounds(3)
    ledger, vectors = run.fed.ledger, VECTORS.get(name, 1)
    assert ledger.exchanges == 2 * 3
    assert ledger.uploads == ledger.downloads == 3 * (9 + 4)
    assert ledger.bytes_down == 8 * 3 * (9 * N + 4 * N * vectors)
    assert ledger.bytes_up == 8 * 3 * (9 + 4 * N * vectors)
    assert run.fed.times_selected.sum() == 3 * 4


def test_greedy_takes_the_longest_steps_and_one_other():
    run = start(build("feddcd"), selection=Greedy(count=4, candidates=8))
    dual = Dual(run.data)
    for round in range(1, 7):
        x, before = run.server.x, run.states()
        run.rounds(1)
        pool = run.selector.select(round, 0)
        w = np.matvec(dual.inverse, before.y + dual.b)
        assert set(largest(np.linalg.norm(w - x, axis=1), pool, 3)) < set(run.fed.selected)
        assert len(run.fed.selected) == 4
        assert np.allclose(run.states().w[pool], w[pool], rtol=1e-9, atol=1e-12)  # candidates keep w_i


def test_with_a_scaling_of_their_own_steps_are_measured_in_its_norm_and_scores_take_the_time_of_a_solution():
    run = start(build("feddcd", {"scaling": "own"}), selection=Greedy(count=2, uniform=0))
    dual = Dual(run.data)
    own = np.linalg.eigvalsh(dual.Q)[:, 0]
    for _ in range(5):
        x, y = run.server.x, run.states().y
        run.rounds(1)
        score = np.sqrt(own) * np.linalg.norm(np.matvec(dual.inverse, y + dual.b) - x, axis=1)
        assert np.array_equal(run.fed.selected, largest(score, np.arange(M), 2))
    algorithm = build("feddcd", {"solver": {"name": "gd", "steps": 3}})
    run = start(algorithm, selection=Greedy(count=4, candidates=9), system={"speed": 10.0})
    fed, work = run.fed, 3 * run.data.sizes / 10.0
    run.rounds(1)
    pool = run.selector.select(1, 0)
    assert np.isclose(fed.schedule.seconds, work[pool].max() + work[fed.selected].max())


def test_the_uniform_part_favours_nobody_that_is_not_ahead():
    run = start(build("feddcd", {"eta": 1e-12}), selection=Greedy(count=3, uniform=1))
    times = np.zeros(M)
    run.rounds(1)
    for _ in range(100):
        x, w = run.server.x, run.states().w
        ahead = np.argsort(-np.linalg.norm(w - x, axis=1), kind="stable")[:2]
        run.rounds(1)
        others = np.setdiff1d(run.fed.selected, ahead)
        assert len(others) == 1
        times[others] += 1
    assert np.count_nonzero(times) >= M - 2


def test_without_a_uniform_part_twins_stop_all_progress():
    """The two that are furthest from the model agree, so their dual variables stay; then it is the other two's turn."""
    twins = quadratics(np.tile(np.eye(2), (4, 1, 1)), np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]))
    gaps = {}
    for uniform in (0, 1):
        run = Run(build("feddcd"), "quadratic", data=twins, selection=Greedy(count=2, uniform=uniform))
        run.rounds(40)
        gaps[uniform] = Dual(run.data).gap(run.states().y)
    assert gaps[0] == Dual(twins).gap(np.zeros((4, 2))) > 1
    assert gaps[1] < 1e-6


def test_a_selector_that_names_nobody_has_all_clients_as_candidates():
    run = start(build("fedavg"), selection=Biased(count=3))
    run.fed.participants.selector = run.selector._replace(select=lambda round, again: None)
    run.rounds(1)
    assert len(run.fed.selected) == 3
