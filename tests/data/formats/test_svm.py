"""LIBSVM files."""

from __future__ import annotations

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


WANTED = np.array([[0.5, 0, -0.2, 0, 0, 0], [0, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("x.svm", bytes),
        ("x.libsvm", bytes),
        ("x.svmlight", bytes),
        ("x.svm.gz", gzip.compress),
        ("x.libsvm.bz2", bz2.compress),
    ],
)
def test_libsvm_stays_sparse(tmp_path, name, pack, monkeypatch):
    monkeypatch.setattr("mpifed.data.formats.svm.CHUNK", 30)  # a chunk ends inside the file
    (tmp_path / name).write_bytes(pack(LIBSVM))
    dataset = load(tmp_path / name, clients=2)
    wanted = np.column_stack([[1, -1, 1, -1], WANTED])
    assert dataset.sparse
    assert dataset.classes == 0
    assert np.array_equal(table_of(dataset), wanted[np.lexsort(wanted.T)])


def test_libsvm_indices_count_from_0_if_0_is_there_or_if_told(tmp_path):
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 0:5 2:6\n0 1:1\n")
    assert load(path, clients=1).n == 3
    refused(path, r"x\.svm has the index 0: .* data\.zero_based = true", zero_based=False, clients=1)
    path.write_bytes(b"1 1:5 2:6\n0 1:1\n")
    assert load(path, clients=1).n == 2
    assert load(path, clients=1, zero_based=True).n == 3


@pytest.mark.parametrize(
    "line", ["x 1:2", "1 1:2 3", "1 1:2:3 4", "1 a:2", "1 1.5:2", "1 1: 2:3", "1,2 3:4", "1 inf:2", "1 nan:2"]
)
def test_a_bad_libsvm_line_is_named(tmp_path, line):
    (tmp_path / "x.svm").write_text(f"1 1:1\n-1 2:1\n{line}\n1 1:1\n")
    refused(tmp_path / "x.svm", r"x\.svm, line 3: .* is not of the form 'label index:value …'", clients=1)


def test_labels_may_be_words(tmp_path, monkeypatch):
    monkeypatch.setattr("mpifed.data.formats.svm.CHUNK", 10)
    (tmp_path / "x.svm").write_text("# text\n\nspam 1:1\nham 2:1\nspam 1:2\n")
    dataset = load(tmp_path / "x.svm", clients=1)
    assert np.array_equal(table_of(dataset), [[1, 1, 0], [1, 2, 0], [0, 0, 1]])
    assert dataset.names == ("ham", "spam")


@pytest.mark.parametrize("line", ["1 1:1", "nan 1:1", "1:1 2:2", "a,b 1:1", "spam 1:x"])
def test_a_bad_line_among_words_is_named(tmp_path, line):
    (tmp_path / "x.svm").write_text(f"spam 1:1\nham 2:1\n{line}\nspam 1:2\n")
    refused(tmp_path / "x.svm", r"x\.svm, line 3: .* 'label index:value …', with a word as label", clients=1)


def test_several_labels_on_a_line_are_refused(tmp_path):
    (tmp_path / "x.svm").write_text("1,2 1:1\n2,3 2:1\n")
    refused(tmp_path / "x.svm", r"x\.svm, line 1: '1,2 1:1' is not of the form", clients=1)
