"""[graph] in a study: what is recorded."""

import pytest

import mpifed

DATA = {"name": "linreg-noniid", "clients": 12, "features": 5}
STUDY = {"data": DATA, "algorithm": "dgd", "graph": "ring", "rounds": 6, "stop": {"gradient": 0.0}}


def test_the_model_is_the_mean_of_the_nodes_and_consensus_says_how_far_they_are():
    result = mpifed.run(STUDY | {"rounds": 20})
    rounds = result.rounds
    assert rounds["consensus"][0] == rounds["consensus_max"][0] == 0
    assert (rounds["consensus"][1:] > 0).all()
    assert (rounds["consensus"] <= rounds["consensus_max"]).all()
    assert (rounds["consensus_max"] <= 12 * rounds["consensus"]).all()
    assert rounds["objective"][-1] < rounds["objective"][0]


def test_a_result_says_what_the_graph_is():
    attrs = mpifed.run(STUDY | {"graph": "star"}).attrs
    assert (attrs["graph_edges"], attrs["graph_parts"]) == (11, 1)
    assert attrs["spectral_gap"] == pytest.approx(1 / 12)


def test_a_graph_in_parts_runs_and_the_run_says_so(tmp_path, capsys):
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"{i} {i + 1}\n" for i in (0, 1, 3, 4, 6, 7, 9, 10)))
    result = mpifed.run(STUDY | {"graph": {"name": "file", "path": str(file)}})
    assert result.attrs["graph_parts"] == 4
    assert (
        "the graph is not connected: it has 4 parts, and only nodes of the same part can agree" in result.attrs["notes"]
    )
    assert result.attrs["spectral_gap"] == pytest.approx(0, abs=1e-12)


def test_a_certificate_says_that_there_is_no_theorem():
    certificate = mpifed.run(STUDY | {"algorithm": {"name": "dgd", "certify": True}}).certificate
    assert certificate.remarks[0].startswith("no theorem is certified for dgd")
