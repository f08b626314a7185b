"""[graph] in a study: what is recorded."""

import pytest

import mpifed

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
