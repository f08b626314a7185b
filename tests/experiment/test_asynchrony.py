"""Asynchronous runs and runs on graphs in experiment files: what a result says of them."""

import re

import numpy as np
import pytest

import mpifed
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


DATA = {"name": "linreg-noniid", "clients": 12, "features": 5}
STUDY = {"data": DATA, "algorithm": "dgd", "graph": "ring", "rounds": 6, "stop": {"gradient": 0.0}}


def test_a_result_says_what_the_graph_is_whether_it_is_in_parts_and_how_far_the_nodes_are_from_their_mean(tmp_path):
    result = mpifed.run(STUDY | {"rounds": 20})
    rounds = result.rounds
    assert rounds["consensus"][0] == rounds["consensus_max"][0] == 0
    assert (rounds["consensus"][1:] > 0).all()
    assert (rounds["consensus"] <= rounds["consensus_max"]).all()
    assert (rounds["consensus_max"] <= 12 * rounds["consensus"]).all()
    assert rounds["objective"][-1] < rounds["objective"][0]

    attrs = mpifed.run(STUDY | {"graph": "star"}).attrs
    assert (attrs["graph_edges"], attrs["graph_parts"]) == (11, 1)
    assert attrs["spectral_gap"] == pytest.approx(1 / 12)
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"{i} {i + 1}\n" for i in (0, 1, 3, 4, 6, 7, 9, 10)))
    result = mpifed.run(STUDY | {"graph": {"name": "file", "path": str(file)}})
    assert result.attrs["graph_parts"] == 4
    sentence = "the graph is not connected: it has 4 parts, and only nodes of the same part can agree"
    assert sentence in result.attrs["notes"]
    assert result.attrs["spectral_gap"] == pytest.approx(0, abs=1e-12)
    certificate = mpifed.run(STUDY | {"algorithm": {"name": "dgd", "certify": True}}).certificate
    assert certificate.remarks[0].startswith("no theorem is certified for dgd")
