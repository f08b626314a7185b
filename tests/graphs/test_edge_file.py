"""Graphs from files of edges: what is read, and what is refused in one sentence."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.graphs.graph import Graph
from mpifed.graphs.weights import Weights


@pytest.fixture
def read(tmp_path):
    """W of three clients from the text of a file."""

    def matrix(text, m=3, **options):
        (tmp_path / "edges.txt").write_text(text)
        table = {"name": "file", "path": str(tmp_path / "edges.txt")} | options
        return Weights(Graph.build(table, "graph"), 0, m).first.W.toarray()

    return matrix


def test_edges_without_weights_get_those_of_metropolis_and_with_weights_the_diagonal_is_what_rows_lack(read):
    right = np.array([[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]])
    for text in ("0 1\n1 2\n", "# a path\n2,1\n\n0\t1  # the first\n", "1 0\n0 1\n1 2\n"):
        assert np.allclose(read(text), right, rtol=0, atol=1e-15)
    assert (read("# no edges") == np.eye(3)).all()
    assert np.allclose(read("0 1 0.25\n1 2 0.5\n"), [[0.75, 0.25, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]])
    assert np.allclose(read("0 1 0.25\n1 0 0.25\n0 0 0.75\n1 2 0.5\n"), read("0 1 0.25\n1 2 0.5\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1\n1 3\n", "every line must begin with the numbers of two clients, from 0 to 2"),
        ("0 1\n-1 2\n", "from 0 to 2"),
        ("0 1.5\n", "from 0 to 2"),
        ("0 1 0.2\n1 0 0.3\n", "W must be symmetric, and the edge between 0 and 1 has two weights"),
        ("0 1 0.2\n0 0 0.7\n", "rows of W must sum to 1, and that of client 0 sums to 0.9"),
        ("1e300 1\n", "from 0 to 2"),
        ("0 1 0.2\n1 2\n", "either all lines have a weight or none"),
        ("0 1 inf\n", "it must hold numbers: line 1 has one that is not finite"),
        ("0 1\n1 2 nan\n", "it must hold numbers: line 2 has one that is not finite"),
        ("0 0_1\n", "it must hold numbers: line 1 has one that is not finite, or has _ in it"),
        ("0 1 2 3\n", "line 1 has 4 numbers"),
        ("0 one\n", "it must hold numbers"),
    ],
)
def test_a_wrong_file_is_refused_and_a_missing_one(read, text, words):
    with pytest.raises(UserError, match=rf"^graph\.path = '.*edges\.txt' is wrong: .*{words}"):
        read(text)
    with pytest.raises(UserError, match=r"nowhere' is wrong: it cannot be read: No such file"):
        read(text, path="nowhere")
