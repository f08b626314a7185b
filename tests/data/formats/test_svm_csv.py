"""LIBSVM and CSV files."""

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
    monkeypatch.setattr("mpifed.data.formats.svm_csv.CHUNK", 30)  # a chunk ends inside the file
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


CSV = "a,b,class\n1,2.5,0\n3,-1e2,1\n5,6,1\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (CSV, {}),
        (CSV, {"target": "class"}),
        (CSV, {"target": -1}),
        (CSV, {"target": 2}),
        (CSV.split("\n", 1)[1], {}),
        (CSV.replace(",", ";"), {}),
        (CSV.replace(",", "\t"), {}),
        ("class,a,b\n0,1,2.5\n1,3,-1e2\n1,5,6\n", {"target": "class"}),
        ("\ufeff" + CSV, {"target": "class"}),
        (CSV.replace("a,", '"a",').replace("\n", "\r\n"), {}),
    ],
)
def test_csv_with_and_without_header(tmp_path, text, options):
    (tmp_path / "x.csv").write_text(text, newline="")
    dataset = load(tmp_path / "x.csv", clients=1, **options)
    assert np.array_equal(table_of(dataset), [[1, 3, -100], [0, 1, 2.5], [1, 5, 6]])
    assert dataset.classes == 2


def test_csv_may_be_packed(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert load(tmp_path / "x.csv.gz", clients=1).n == 2


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (CSV + "7,8\n", {}, r"x\.csv, line 5: 2 columns, but the first line has 3"),
        (CSV + "7,,8\n", {}, r"x\.csv, line 5: '' is not a number"),
        (CSV + "7,oak,8\n", {}, r"x\.csv, line 5: 'oak' is not a number"),
        (
            CSV,
            {"target": "klass"},
            r"data\.target = \"klass\" is not a column of .*x\.csv, which has columns a, b, class",
        ),
        ("1,2\n", {"target": "a"}, r"data\.target = \"a\" is not a column of .*x\.csv, which has no header"),
        (CSV, {"target": 3}, r"data\.target = 3 is not a column of .*x\.csv, which has 3"),
        ("a,b\n", {}, r"X of .*x\.csv has the shape \(0, 1\)"),
        ("", {}, r"X of .*x\.csv has the shape"),
        ("1\n2\n", {}, r"X of .*x\.csv has the shape \(2, 0\)"),
    ],
)
def test_a_bad_csv_is_told_where(tmp_path, text, options, sentence):
    (tmp_path / "x.csv").write_text(text)
    refused(tmp_path / "x.csv", sentence, clients=1, **options)
