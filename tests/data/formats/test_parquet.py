"""Parquet files: tables of numbers with a column of labels."""

from __future__ import annotations

import decimal
import string
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from tests.helpers.data_files import load, refused, same_rows_however_asked

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

KINDS = ["bool", "int8", "int64", "uint16", "float32", "float64"]


def save(path, columns, **options):
    pq.write_table(pa.table(columns), path, **options)
    return path


@st.composite
def tables(draw):
    """Columns of numbers of any kind, with an order and names of their own."""
    d, n = draw(st.integers(1, 30)), draw(st.integers(2, 5))
    names = draw(st.lists(st.text(string.ascii_letters + ". äß", min_size=1), min_size=n, max_size=n, unique=True))
    seed = draw(st.integers(0, 99))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=n, max_size=n))
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 100, d).astype(kind) for name, kind in zip(names, kinds, strict=True)}


@settings(max_examples=40, deadline=None)
@given(columns=tables(), target=st.integers(0, 9), rows=st.integers(1, 9))
def test_what_is_written_is_read(columns, target, rows, tmp_path_factory):
    path = save(tmp_path_factory.mktemp("parquet") / "x.parquet", columns, row_group_size=rows)
    names = list(columns)
    label = names[target % len(names)]
    for wanted in (label, names.index(label), names.index(label) - len(names)):
        dataset = load(path, clients=1, target=wanted, partition="contiguous")
        X, y = dataset.rows(0, 1)
        assert np.array_equal(X, np.column_stack([columns[name] for name in names if name != label]).astype(float))
        assert np.array_equal(y, columns[label].astype(float))


def test_the_last_column_holds_the_labels_unless_told(tmp_path):
    path = save(tmp_path / "x.pq", {"a": [1.5, 2.0, 3.0], "b": [True, False, True], "y": [0, 1, 1]})
    dataset = load(path, clients=1, partition="contiguous")
    assert dataset.rows(0, 1)[0].tolist() == [[1.5, 1], [2, 0], [3, 1]]
    assert dataset.rows(0, 1)[1].tolist() == [0, 1, 1]
    assert load(path, clients=1, target="a").classes == 0


def test_float32_columns_take_no_more_memory_than_they_need(tmp_path):
    path = save(tmp_path / "x.parquet", {"a": np.ones(4, np.float32), "b": np.ones(4, np.int8), "y": [0, 1, 0, 1]})
    assert load(path, clients=2).train.X.dtype == np.float32


@pytest.mark.parametrize("categories", [False, True])
def test_labels_and_clients_may_be_text(tmp_path, categories):
    labels, users = pa.array(["no", "yes", "no", "yes"]), pa.array(["zoe", "adam", "zoe", "mia"])
    if categories:
        labels, users = labels.dictionary_encode(), users.dictionary_encode()
    path = save(tmp_path / "x.parquet", {"user": users, "a": [1, 2, 3, 4], "label": labels})
    dataset = load(path, client="user")
    assert list(dataset.sizes) == [1, 1, 2]
    assert dataset.rows(0, 3)[0].ravel().tolist() == [2, 4, 1, 3]
    assert dataset.rows(0, 3)[1].tolist() == [1, 1, 0, 0]
    assert dataset.names == ("no", "yes")
    same_rows_however_asked(dataset)


def test_decimals_are_numbers(tmp_path):
    path = save(tmp_path / "x.parquet", {"a": [decimal.Decimal("1.25"), decimal.Decimal("2.50")], "y": [0, 1]})
    assert load(path, clients=1, partition="contiguous").rows(0, 1)[0].tolist() == [[1.25], [2.5]]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (
            {"a": [1.0, None, None], "y": [0, 1, 0]},
            {},
            r"x\.parquet has 2 nulls in the column 'a', the first one in row 1 .*: fill them in or drop these rows$",
        ),
        ({"a": [1.0, 2.0], "y": [None, 1]}, {}, r"x\.parquet has 1 null in the column 'y', the first one in row 0"),
        ({"a": [1.0, 2.0], "y": [0.0, np.nan]}, {}, r"row 1 of y of .*x\.parquet is not finite"),
        ({"a": ["red", "blue"], "y": [0, 1]}, {}, r"the column 'a' of .*x\.parquet has the type string: it must have"),
        ({"a": [[1, 2], [3]], "y": [0, 1]}, {}, r"the column 'a' of .*x\.parquet has the type list"),
        ({"a": [1, 2], "y": [[0], [1]]}, {}, r"the column 'y' of .*x\.parquet has the type list"),
        (
            {"a": [1, 2], "y": [0, 1]},
            {"target": "z"},
            r'data\.target = "z" is not a column of .*x\.parquet, which has columns a, y$',
        ),
        ({"a": [1, 2], "y": [0, 1]}, {"target": 2}, r"data\.target = 2 is not a column of .*, which has 2 columns"),
        ({"a": [1, 2], "y": [0, 1]}, {"client": "y"}, r'data\.client = "y" is the column of the labels'),
        ({"y": [0, 1]}, {}, r"X of .*x\.parquet has the shape \(2, 0\)"),
        ({"a": np.zeros(0), "y": np.zeros(0)}, {}, r"X of .*x\.parquet has the shape \(0, 1\)"),
        ({"a": [1, 2], "y": [0, 1]}, {"zero_based": True}, r"data\.zero_based = true is for LIBSVM files only"),
    ],
)
def test_a_bad_table_is_told_where(tmp_path, columns, options, sentence):
    refused(save(tmp_path / "x.parquet", columns), sentence, clients=options.pop("clients", None), **options)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "a", "y"])
    pq.write_table(table, tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", r"x\.parquet has several columns 'a'", clients=1)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"a,b\n1,2\n", b"PAR1" + bytes(40) + b"PAR1"])
def test_what_is_not_parquet_is_refused(tmp_path, content):
    (tmp_path / "x.parquet").write_bytes(content)
    refused(tmp_path / "x.parquet", r"x\.parquet cannot be read as Parquet: it is damaged or of another", clients=1)


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    whole = save(tmp_path / "x.parquet", {"a": np.arange(99.0), "y": np.arange(99) % 2}).read_bytes()
    for end in range(0, len(whole), 37):
        (tmp_path / "cut.parquet").write_bytes(whole[:end])
        refused(tmp_path / "cut.parquet", "cut.parquet cannot be read as Parquet", clients=3)


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    path = save(tmp_path / "x.parquet", {"a": [1.0, 2.0], "y": [0, 1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = Data.build({"name": "file", "path": str(path), "clients": 1}, "data")
    sentence = r'^data\.path = ".*x\.parquet" needs pyarrow to be read: pip install "mpifed\[data\]"$'
    for call in (source.check, lambda: source.load(0, "float64")):
        with pytest.raises(UserError, match=sentence):
            call()
