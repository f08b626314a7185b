"""Biased selection: candidates with the largest gradients train, with the same bits on any number of hosts."""

from itertools import combinations

import numpy as np
import pytest

from mpifed.federation.request import Request
from mpifed.federation.selection import Biased
from tests.helpers.algorithm_cases import SETTINGS, VECTORS, Still, start
from tests.helpers.algorithm_runs import SOURCES, M, N, Run, build, gradients


@pytest.mark.parametrize("name", ["fedavg", "flame"])
def test_biased_selection_takes_the_largest_gradients_among_the_candidates(name):
    """With all samples: ‖∇f_i(x)‖, of FLAME that of its local objective, ‖∇f_i(θ_i) + λ(θ_i − w)‖."""
    run = start(build(name, SETTINGS[name]), selection=Biased(count=3, candidates=7, batch_size=0))
    for round in range(1, 7):
        x, state = run.server.x, run.states()
        theta = state.theta if name == "flame" else np.tile(x, (M, 1))
        norms = np.linalg.norm(gradients(run, theta) + 20.0 * (theta - x), axis=1)
        run.rounds(1)
        pool = run.selector.select(round, 0)
        assert len(pool) == 7
        assert np.array_equal(run.fed.selected, np.sort(pool[np.argsort(-norms[pool])[:3]]))


def test_ties_of_biased_selection_go_to_the_first_client():
    run = Run(
        build("fedavg"),
        Still(),
        data=SOURCES["least-squares"].load(0, "float64"),
        selection=Biased(count=3, candidates=7),
    )
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


@pytest.mark.parametrize("name", ["fedavg", "flame", "scaffold"])
def test_candidates_are_charged_the_model_and_one_number(name):
    rounds, count, pool = 3, 4, 9
    run = start(build(name, SETTINGS[name]), selection=Biased(count=count, candidates=pool))
    run.rounds(rounds)
    ledger, vectors = run.fed.ledger, VECTORS.get(name, 1)
    assert ledger.exchanges == 2 * rounds
    assert ledger.uploads == ledger.downloads == rounds * (pool + count)
    assert ledger.bytes_down == 8 * rounds * (pool * N + count * N * vectors)
    assert ledger.bytes_up == 8 * rounds * (pool + count * N * vectors)
    assert run.fed.times_selected.sum() == rounds * count


def test_without_candidates_everyone_is_one():
    run = start(build("fedavg", SETTINGS["fedavg"]), selection=Biased(count=4))
    run.rounds(1)
    assert run.fed.ledger.uploads == M + 4
    norms = np.linalg.norm(gradients(run, np.zeros(N)), axis=1)
    assert np.array_equal(
        run.fed.selected, np.sort(np.argsort(-norms)[:4])
    )  # at most 25 samples: a batch is all of them


def test_biased_selection_ranks_pfedme_by_its_local_objective():
    run = start(build("pfedme", SETTINGS["pfedme"]), selection=Biased(count=3, batch_size=0))
    run.rounds(3)
    x, theta = run.server.x, run.states().theta
    norms = np.linalg.norm(gradients(run, theta) + 5.0 * (theta - x), axis=1)
    run.rounds(1)
    assert np.array_equal(run.fed.selected, np.sort(np.argsort(-norms)[:3]))
