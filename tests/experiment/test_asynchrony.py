"""Asynchronous runs in experiment files: what a result says of them."""

import re

import numpy as np

import mpifed as package
from mpifed.experiment.config import experiment, override
from mpifed.experiment.optimum import compute_certificate as certified
from mpifed.report.summary import show

SMALL = ["data.clients=9", "data.features=5", "rounds=12", "algorithm=fedavg"]
SLOW = ["system.speed={name='lognormal',median=100}", "system.latency=0.01"]
AWAY = [*SMALL, *SLOW, "asynchronous.arrivals=3"]


def run(*words):
    return package.run(override({}, words), progress=None)


def test_a_result_and_its_summary_have_who_arrived_how_old_it_was_and_how_many_computed():
    """Also where all are written for the selection."""
    result = run(*AWAY)
    came = [result.selected(k) for k in range(1, 13)]
    assert all(len(ids) == 3 and (np.diff(ids) > 0).all() for ids in came)
    assert np.bincount(np.concatenate(came), minlength=9).tolist() == result.clients["times_selected"].tolist()
    rounds = result.rounds
    assert rounds["computed_at_once"][:2].tolist() == [0, 9]
    assert 3 * 12 <= rounds["computed_at_once"].sum() <= 3 * 12 + 9 - 3  # at the end some are still under way
    assert (rounds["staleness"] <= rounds["staleness_max"]).all()
    assert (np.diff(rounds["simulated_seconds"]) >= 0).all()
    assert not {"selected", "dropped", "late"} & rounds.keys()
    np.testing.assert_array_equal(rounds["objective"], run(*AWAY, "selection=all").rounds["objective"])
    together = rounds["computed_at_once"][rounds["computed_at_once"] > 0]
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
    words = ["algorithm=feddcd", "data=gaussian", "data.clients=5", "problem=logistic", *SLOW, "system.passes=3"]
    plain = certified(experiment(override({}, words)))
    away = certified(experiment(override({}, [*words, "asynchronous.arrivals=2"])))
    told = [{one.name: one.holds for one in found.conditions}["uniform selection (1: yes)"] for found in (plain, away)]
    assert told == [True, False]
