"""Asynchronous runs in experiment files: what is refused, in which words, and what a result says of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mpifed as package
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.experiment.certify import study as certified
from mpifed.experiment.config import experiment, override
from mpifed.report.summary import show
from tests.helpers.commands import mpifed

SMALL = ["data.clients=9", "data.features=5", "rounds=12", "algorithm=fedavg"]
SLOW = ["system.speed={name='lognormal',median=100}", "system.latency=0.01"]
AWAY = [*SMALL, *SLOW, "asynchronous.arrivals=3"]
GIVEN = "asynchronous.arrivals = 3 is wrong"
WRONG = {
    "without [system]": ([*SMALL, "asynchronous.arrivals=3"], f"{GIVEN} without a table [system]: who arrives first"),
    "too many": ([*AWAY, "asynchronous.arrivals=10"], "arrivals = 10 is wrong: it must be between 1 and the 9 clients"),
    "none": ([*AWAY, "asynchronous.arrivals=0"], "asynchronous.arrivals = 0 is wrong: it must be a whole number >= 1"),
    "negative": ([*AWAY, "asynchronous.staleness=-1"], "asynchronous.staleness = -1 is wrong: it must be a whole"),
    "another method": (
        [*AWAY, "algorithm=scaffold"],
        f"{GIVEN}: scaffold cannot be asynchronous, because its rounds wait for all the clients that they call",
    ),
    "its own reason": ([*AWAY, "algorithm=fedopt"], f"{GIVEN}: fedopt cannot be asynchronous, because Δ is the step"),
    "one for the dual": (
        [*AWAY, "algorithm=feddcd", "problem=logistic", "data=gaussian", "asynchronous.arrivals=1"],
        "asynchronous.arrivals = 1 is wrong: feddcd needs at least 2 clients a round",
    ),
    "a selection": ([*AWAY, "selection.count=4"], "selection.count = 4 is wrong with [asynchronous]: all clients work"),
    "another selection": ([*AWAY, "selection=cover"], 'selection = "cover" is wrong with [asynchronous]: all clients'),
    "masks": ([*AWAY, "masks={}"], "masks cannot be used with [asynchronous]: clients agree on masks before"),
    "downloads": (
        [*AWAY, "compress.down=natural"],
        'compress.down = "natural" is wrong with [asynchronous]: compressed',
    ),
    "last uploads": (
        [*AWAY, "compress.up=natural", "algorithm.aggregate=all"],
        'compress.up = "natural" is wrong with [asynchronous]: the server of fedavg keeps the last uploads of all',
    ),
    "a deadline": (
        [*AWAY, "system.deadline=2"],
        "system.deadline = 2.0 is wrong with [asynchronous]: there every client",
    ),
    "partial work": (
        [*AWAY, "system.deadline=2", "system.partial=true"],
        "system.deadline = 2.0 is wrong with [asynchronous]: there every client replies in its own time",
    ),
    "drop-outs": ([*AWAY, "system.dropout=0.1"], "system.dropout = 0.1 is wrong with [asynchronous]"),
    "no time": (
        [*SMALL, "system={}", "asynchronous={}"],
        "asynchronous.arrivals = 1 is wrong: with this [system] client 0 takes no time and would always arrive first",
    ),
}


def run(*words):
    return package.run(override({}, words), progress=None)


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_meaning_is_refused_before_round_one(name):
    words, sentence = WRONG[name]
    with pytest.raises(UserError, match=re.escape(sentence)) as told:
        run(*words)
    assert "\n" not in str(told.value)


def test_the_command_says_it_and_so_does_the_dry_run_of_a_sweep(tmp_path):
    words, sentence = WRONG["another method"]
    dry = ["sweep", *words, "--grid", "seed=0:3", "-o", tmp_path / "results", "--dry-run"]
    for command in (["run", *words], dry):
        done = mpifed(*command)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
    assert mpifed("sweep", *SMALL, *SLOW, "--grid", "asynchronous.arrivals=1,2,9", *dry[-3:]).code == 0


def test_methods_that_are_named_instead_can():
    with pytest.raises(UserError) as told:
        run(*WRONG["another method"][0])
    able = re.search(r"call; (.*) can, and without", str(told.value)).group(1).split(", ")
    assert able == [name for name in Algorithm.choices if Algorithm.member(name, "").asynchronous]
    assert {"fedavg", "feddcd"} <= set(able)


def test_all_may_be_written_for_the_selection():
    plain, named = run(*AWAY), run(*AWAY, "selection=all")
    np.testing.assert_array_equal(plain.rounds["objective"], named.rounds["objective"])


def test_a_result_has_who_arrived_how_old_it_was_and_how_many_computed():
    result = run(*AWAY)
    came = [result.selected(k) for k in range(1, 13)]
    assert all(len(ids) == 3 and (np.diff(ids) > 0).all() for ids in came)
    assert np.bincount(np.concatenate(came), minlength=9).tolist() == result.clients["times_selected"].tolist()
    rounds = result.rounds
    assert rounds["computed_at_once"][:2].tolist() == [0, 9]
    assert 3 * 12 <= rounds["computed_at_once"].sum() <= 3 * 12 + 9 - 3  # at the end some are still under way
    assert (rounds["staleness"] <= rounds["staleness_max"]).all()
    assert (np.diff(rounds["simulated_seconds"]) >= 0).all()
    assert not {"asked", "dropped", "late"} & rounds.keys()


def test_the_summary_says_how_many_clients_computed_at_a_time():
    result = run(*AWAY)
    together = result.rounds["computed_at_once"]
    together = together[together > 0]
    text = show(result)
    assert re.search(rf"clients computed +{together.mean():.1f} a request, {len(together)} requests", text)
    assert re.search(rf"staleness +\d\.\d\d, at most {result.rounds['staleness_max'].max()}", text)
    assert "asynchronous.arrivals" in text


def test_with_equal_clients_all_compute_at_once():
    """Nine equal clients, three a round: every third round all nine begin to compute, each from its own model."""
    equal = ["system.speed=100", "system.passes=5", "data=gaussian", "data.samples=20", "data.features=5"]
    result = run(*SMALL, *equal, "asynchronous.arrivals=3")
    assert result.rounds["computed_at_once"].tolist() == [0, *([9, 0, 0] * 4)]
    assert result.rounds["staleness"][4:].tolist() == [2.0] * 9


def test_the_theorem_of_uniform_selection_is_not_certified():
    words = ["algorithm=feddcd", "data=gaussian", "data.clients=5", "problem=logistic", "rounds=3", *SLOW]
    words += ["system.passes=3"]
    plain = certified(experiment(override({}, words)))
    away = certified(experiment(override({}, [*words, "asynchronous.arrivals=2"])))
    told = [{one.name: one.holds for one in found.conditions}["uniform selection (1: yes)"] for found in (plain, away)]
    assert told == [True, False]


def test_resuming_with_another_bound_is_another_run(tmp_path):
    path = tmp_path / "out.h5"
    assert mpifed("run", *AWAY, "-q", "-o", path).code == 0
    done = mpifed("resume", path, "rounds=20", "asynchronous.staleness=3")
    assert done.code == 2
    assert "asynchronous.staleness = 3 is wrong" in done.err
