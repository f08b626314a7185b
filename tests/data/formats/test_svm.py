"""LIBSVM files."""

import bz2
import gzip

import numpy as np
import pytest

from tests.helpers.data_files import load, refused, table_of

LIBSVM = b"""# a comment
1 1:0.5 3:-2e-1 # another
-1 qid:7 2:4

+1
-1 6:1 1:2
"""
WANTED = np.array([[1, 0.5, 0, -0.2, 0, 0, 0], [-1, 0, 4, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0], [-1, 2, 0, 0, 0, 0, 1]])


@pytest.mark.parametrize("name", ["x.svm", "x.libsvm", "x.svmlight", "x.svm.gz", "x.libsvm.bz2"])
def test_libsvm_stays_sparse(tmp_path, name, monkeypatch):
    monkeypatch.setattr("mpifed.data.formats.svm.CHUNK", 30)  # a chunk ends inside the file
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get((tmp_path / name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(LIBSVM))
    dataset = load(tmp_path / name, clients=2)
    assert (dataset.sparse, dataset.classes) == (True, 0)
    assert np.array_equal(table_of(dataset), WANTED[np.lexsort(WANTED.T)])


def test_indices_count_from_0_if_0_is_there_or_if_told_and_labels_may_be_words(tmp_path, monkeypatch):
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 0:5 2:6\n0 1:1\n")
    assert load(path, clients=1).n == 3
    refused(path, r"x\.svm has the index 0: .* data\.zero_based = true", zero_based=False, clients=1)
    path.write_bytes(b"1 1:5 2:6\n0 1:1\n")
    assert (load(path, clients=1).n, load(path, clients=1, zero_based=True).n) == (2, 3)
    monkeypatch.setattr("mpifed.data.formats.svm.CHUNK", 10)
    (tmp_path / "x.svm").write_text("# text\n\nspam 1:1\nham 2:1\nspam 1:2\n")
    dataset = load(tmp_path / "x.svm", clients=1)
    assert np.array_equal(table_of(dataset), [[1, 1, 0], [1, 2, 0], [0, 0, 1]])
    assert dataset.names == ("ham", "spam")


BAD = ["x 1:2", "1 1:2 3", "1 1:2:3 4", "1 a:2", "1 1.5:2", "1 1: 2:3", "1,2 3:4", "1 inf:2", "1 nan:2", "1_0 1:2"]
BAD_WORDS = ["1 1:1", "nan 1:1", "1:1 2:2", "a,b 1:1", "spam 1:x", "spam 1:1_0"]


@pytest.mark.parametrize(
    ("first", "second", "line", "end"),
    [("1", "-1", line, "$") for line in BAD] + [("spam", "ham", line, ", with a word as label$") for line in BAD_WORDS],
)
def test_a_bad_line_is_named(tmp_path, first, second, line, end):
    (tmp_path / "x.svm").write_text(f"{first} 1:1\n{second} 2:1\n{line}\n{first} 1:1\n")
    refused(tmp_path / "x.svm", rf"x\.svm, line 3: .* is not of the form 'label index:value …'{end}", clients=1)
    (tmp_path / "x.svm").write_text("1,2 1:1\n2,3 2:1\n")  # several labels on a line
    refused(tmp_path / "x.svm", r"x\.svm, line 1: '1,2 1:1' is not of the form", clients=1)


def test_an_index_that_a_line_has_twice_or_that_is_no_feature_is_named_with_its_line(tmp_path):
    """Twice: the two values were added up."""
    (tmp_path / "x.svm").write_text("# text\n1 1:1 3:2\n\n-1 3:1 1:4\n1 2:1 3:1 2:5\n")
    refused(tmp_path / "x.svm", r"x\.svm, line 5 has the index 2 twice: each stands there once", clients=1)
    (tmp_path / "x.svm").write_text("1 0:1 3:2\n1 0:1 0:1\n")
    refused(tmp_path / "x.svm", r"x\.svm, line 2 has the index 0 twice", clients=1)
    (tmp_path / "x.svm").write_text("1 1:1 2:2\n1 2:1\n# text\n-1 2:3 4:1\n")
    assert np.array_equal(table_of(load(tmp_path / "x.svm", clients=1, columns=5))[:, 1:].sum(axis=0), [1, 6, 0, 1, 0])
    refused(tmp_path / "x.svm", r"line 4 has the index 4: .* 1, and data.columns = 3 says that", clients=1, columns=3)
