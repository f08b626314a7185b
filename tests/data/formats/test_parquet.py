"""Parquet files: tables of numbers with a column of labels."""

import decimal
import string
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core import memory
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from tests.helpers.data_files import load, refused

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
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=n, max_size=n))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return {name: rng.integers(0, 100, d).astype(kind) for name, kind in zip(names, kinds, strict=True)}


@given(columns=tables(), target=st.integers(0, 9), rows=st.integers(1, 9))
def test_what_is_written_is_read(columns, target, rows, tmp_path_factory):
    path = save(tmp_path_factory.mktemp("parquet") / "x.parquet", columns, row_group_size=rows)
    names = list(columns)
    label = names[target % len(names)]
    for wanted in (label, names.index(label), names.index(label) - len(names)):
        X, y = load(path, clients=1, target=wanted, partition="contiguous").rows(0, 1)
        assert np.array_equal(X, np.column_stack([columns[name] for name in names if name != label]).astype(float))
        assert np.array_equal(y, columns[label].astype(float))


def test_the_last_column_holds_the_labels_unless_told_and_numbers_take_no_more_memory_than_they_need(tmp_path):
    exact = [decimal.Decimal("1.25"), decimal.Decimal("2.50"), decimal.Decimal("0")]
    columns = {"a": [1.5, 2.0, 3.0], "b": [True, False, True], "c": exact, "y": [0, 1, 1]}
    path = save(tmp_path / "x.pq", columns)
    X, y = load(path, clients=1, partition="contiguous").rows(0, 1)
    assert (X.tolist(), y.tolist()) == ([[1.5, 1, 1.25], [2, 0, 2.5], [3, 1, 0]], [0, 1, 1])
    assert load(path, clients=1, target="a").classes == 0
    path = save(tmp_path / "x.parquet", {"a": np.ones(4, np.float32), "b": np.ones(4, np.int8), "y": [0, 1, 0, 1]})
    assert load(path, clients=2).train.X.dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"a": [1.0, None, None], "y": [0, 1, 0]}, r"x\.parquet has 2 missing cells: 'a' \(2\), the fir"),
        ({"a": [1.0, 2.0], "y": [None, 1]}, r"1 missing cell: .* in the column 'y' in row 0 .*fill in means$"),
        ({"a": [1.0, 2.0], "y": [0.0, np.nan]}, r"1 missing cell: 'y' \(1\), the first one .* row 1 "),
        ({"a": ["1", "2"], "y": [0, 1]}, r"the column 'a' of .*x\.parquet holds numbers as texts, such as '1': co"),
        ({"a": [[1, 2], [3]], "y": [0, 1]}, r"the column 'a' of .*x\.parquet has the type list"),
        ({"a": [1, 2], "y": [[0], [1]]}, r"the column 'y' of .*x\.parquet has the type list"),
        (pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "a", "y"]), r"x\.parquet has several columns 'a'"),
        ({"a": np.zeros(0), "y": np.zeros(0)}, r"x\.parquet has no rows: each is a sample$"),
    ],
)
def test_a_bad_table_is_told_where(tmp_path, columns, sentence):
    refused(save(tmp_path / "x.parquet", columns), sentence)


def test_what_is_not_parquet_or_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    whole = save(path, {"a": np.arange(99.0), "y": np.arange(99) % 2}).read_bytes()
    cuts = [whole[:end] for end in range(0, len(whole), 37)]
    for content in (b"PAR1", b"a,b\n1,2\n", b"PAR1" + bytes(40) + b"PAR1", *cuts):
        path.write_bytes(content)
        refused(path, r"x\.parquet cannot be read as Parquet: it is damaged or of another", clients=1)


def test_what_is_too_large_for_memory_is_refused_before_and_while_it_is_read(tmp_path, monkeypatch):
    path = save(tmp_path / "x.parquet", {"a": np.arange(10.0), "b": np.ones(10, np.int8), "y": np.arange(10.0)})
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free", lambda: 169)  # 8 + 1 + 8 bytes a row
    refused(path, r"^the 10 rows and 3 columns of .*x\.parquet would take 0 MB of memory, but only 0 MB are free$")
    monkeypatch.undo()

    def read(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 134217728 failed")

    monkeypatch.setattr(pq.ParquetFile, "read", read)
    refused(path, r"^the 10 rows and 3 columns of .*x\.parquet do not fit in memory: they take more than 0 MB, and ")


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    path = save(tmp_path / "x.parquet", {"a": [1, 2], "y": [0, 1]})
    source = Data.build({"name": "file", "path": str(path), "clients": 1}, "data")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    sentence = r'^data\.path = ".*x\.parquet" needs pyarrow to be read: pip install "mpifed\[data\]"$'
    for call in (source.check, lambda: source.load(0, "float64")):
        with pytest.raises(UserError, match=sentence):
            call()
