"""Files as data sets: what is read is what is in the file, and a client's rows are its own."""

from __future__ import annotations

import bz2
import gzip

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.partition import Sizes
from tests.helpers.data_files import (
    DENSE,
    SIZES,
    SIZES_TEST,
    SPARSE,
    TEST,
    X_TEST,
    Y_TEST,
    X,
    csr,
    dense,
    load,
    load_and_read,
    refused,
    same_rows_however_asked,
    write,
    y,
)


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".mat"])
@pytest.mark.parametrize("arrays", [DENSE, SPARSE], ids=["dense", "csr"])
def test_client_i_owns_the_next_rows_of_the_file(tmp_path, suffix, arrays):
    if suffix == ".mat" and arrays is SPARSE:
        arrays = {**DENSE, "X": sp.csc_array(X)}
    dataset = load(write(tmp_path / f"fed{suffix}", arrays))
    assert (dataset.m, dataset.n, dataset.classes, dataset.sparse) == (4, 6, 3, arrays is not DENSE)
    assert np.array_equal(dataset.sizes, SIZES)
    assert dataset.sizes_test is None
    rows, labels = dataset.rows(1, 3)
    assert np.array_equal(dense(rows), X[2:6])
    assert np.array_equal(labels, y[2:6])
    same_rows_however_asked(dataset)


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".mat"])
def test_test_samples_belong_to_clients_too_and_count_for_the_classes(tmp_path, suffix):
    dataset = load(write(tmp_path / f"fed{suffix}", {**DENSE, **TEST}))
    assert np.array_equal(dataset.sizes_test, SIZES_TEST)
    assert dataset.classes == 4
    rows, labels = dataset.rows_test(1, 3)
    assert np.array_equal(rows, X_TEST[1:3])
    assert np.array_equal(labels, Y_TEST[1:3])


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.bool_, np.float16, ">f8"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_any_kind_become_those_of_the_run(tmp_path, kind, dtype):
    for form in ({"X": X.astype(kind)}, csr("X", X.astype(kind).astype(np.float64))):
        for suffix in (".h5", ".npz"):
            dataset = load(write(tmp_path / f"fed{suffix}", {**form, "y": y.astype(kind), "sizes": SIZES}), dtype)
            rows, labels = dataset.rows(0, 4)
            assert rows.dtype == labels.dtype == dtype
            assert np.array_equal(dense(rows), X.astype(kind).astype(dtype))


def test_column_vectors_are_labels_and_sizes_too(tmp_path):
    dataset = load(write(tmp_path / "fed.h5", {"X": X, "y": y[:, None], "sizes": SIZES[None, :]}))
    assert np.array_equal(dataset.rows(0, 4)[1], y)


@pytest.mark.parametrize(
    ("labels", "classes"), [([0.0, 1.0, 5.0], 6), ([-1, 1, 1], 0), ([0.5, 1, 2], 0), ([True, False, True], 2)]
)
def test_classes_are_counted_where_labels_are_whole_and_not_negative(tmp_path, labels, classes):
    dataset = load(write(tmp_path / "fed.npz", {"X": X[:3], "y": np.array(labels), "sizes": [2, 1]}))
    assert dataset.classes == classes


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".mat"])
def test_a_file_without_sizes_is_a_pool_that_the_partition_deals_out(tmp_path, suffix):
    path = write(tmp_path / f"pool{suffix}", {"X": X, "y": y})
    dataset = load(path, clients=3)
    same_rows_however_asked(dataset)
    rows, labels = dataset.rows(0, 3)
    table = np.column_stack([rows, labels])
    assert np.array_equal(table[np.lexsort(table.T)], np.column_stack([X, y])[np.lexsort(np.column_stack([X, y]).T)])
    assert list(load(path, clients=3, partition={"name": "sizes", "sizes": [1, 2, 3]}).sizes) == [1, 2, 3]


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_pools_in_a_file_equal_pools_in_memory_block_by_block(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("mpifed.data.formats.on_disk.BLOCK_BYTES", 100)  # two rows of X
    from_mat = load(write(tmp_path / "pool.mat", {"X": X, "y": y}), clients=3).rows(0, 3)[0]
    for arrays in ({"X": X, "y": y}, {**csr("X", X), "y": y}):
        dataset = load(write(tmp_path / f"pool{suffix}", arrays), clients=3)
        assert np.array_equal(dense(dataset.rows(0, 3)[0]), from_mat)
        assert np.array_equal(dense(dataset.rows(2, 3)[0]), from_mat[6:])


def test_a_pool_goes_to_128_clients_unless_told(tmp_path):
    many = {"X": np.ones((300, 2)), "y": np.zeros(300)}
    assert load(write(tmp_path / "pool.npz", many)).m == 128
    refused(write(tmp_path / "few.npz", {"X": X, "y": y}), r"data\.clients = 128 is more than the 10 samples")


def test_the_data_seed_overrides_that_of_the_run(tmp_path):
    path = write(tmp_path / "pool.npz", {"X": X, "y": y})
    own = Data.build({"name": "file", "path": str(path), "clients": 3, "seed": 1}, "data").load(7, "float64")
    assert np.array_equal(own.rows(0, 3)[0], load(path, clients=3, seed=1).rows(0, 3)[0])
    assert not np.array_equal(own.rows(0, 3)[0], load(path, clients=3, seed=7).rows(0, 3)[0])


def with_number_7_2(values, other):
    """The values with the one that stands in row 7, column 2 of X made ``other``."""
    return np.where(values == X.item(7, 2), other, values)


BAD_ARRAYS = [
    ({"y": y, "sizes": SIZES}, "has no X: it needs X, or X_data, X_indices, X_indptr and X_shape"),
    ({"X": X, "sizes": SIZES}, "has no y; it has X, sizes"),
    ({**DENSE, "y": y[:9]}, "y of .* has 9 entries, but X has 10 rows"),
    ({**DENSE, "y": np.stack([y, y])}, r"y of .* has the shape \(2, 10\)"),
    ({**DENSE, "X": X[0]}, r"X of .* has the shape \(6,\): it must be \(d, n\)"),
    ({**DENSE, "X": X[:, :0]}, r"X of .* has the shape \(10, 0\)"),
    ({**DENSE, "X": X.astype(complex)}, "X of .* has the type complex128: it must be an array of real numbers"),
    ({**DENSE, "sizes": [2, 3, 1, 3]}, "sizes of .* add up to 9, but X has 10 rows"),
    ({**DENSE, "sizes": [2, 3, 0, 5]}, "sizes of .* must be whole numbers, .* each at least 1"),
    ({**DENSE, "sizes": [2, -3, 6, 5]}, "sizes of .* must be whole numbers, .* each at least 1"),
    ({**DENSE, "sizes": [2.5, 7.5]}, "sizes of .* must be whole numbers"),
    ({**DENSE, "sizes": [np.inf, 1.0]}, "sizes of .* must be whole numbers"),
    ({**DENSE, "sizes": []}, "sizes of .* must be whole numbers"),
    ({**DENSE, "X_test": X_TEST}, "has test samples but no sizes_test"),
    ({"X": X, "y": y, **TEST}, "has test samples but no sizes:"),
    ({**DENSE, **TEST, "sizes_test": [1, 3]}, "sizes_test of .* has 2 entries, but sizes has 4"),
    ({**DENSE, **TEST, "sizes_test": [1, 0, 0, 0]}, "sizes_test of .* add up to 1, but X_test has 4 rows"),
    ({**DENSE, **TEST, "X_test": X_TEST[:, :5]}, "X_test of .* has 5 columns, but X has 6"),
    ({**SPARSE, "X_shape": [11, 6]}, "X_indptr of .* must be 12 whole numbers that start at 0"),
    ({**SPARSE, "X_shape": [10]}, "X_shape of .* must be two whole numbers"),
    ({**SPARSE, "X_indptr": SPARSE["X_indptr"][::-1]}, "X_indptr of .* must be 11 whole numbers .* never decrease"),
    ({**SPARSE, "X_data": SPARSE["X_data"][1:]}, r"X_data of .* has the shape \(39,\), but X_indptr ends at 40"),
    ({k: v for k, v in SPARSE.items() if k != "X_indices"}, "has no X_indices: it needs X, or X_data, X_indices"),
    ({**SPARSE, "X_indices": SPARSE["X_indices"] + 3}, "cannot be read as .*indices must be < 6"),
    ({**DENSE, "X": with_number_7_2(X, np.nan)}, "row 7 of X of .* is not finite"),
    ({**DENSE, "y": np.where(np.arange(10) == 3, np.inf, y)}, "row 3 of y of .* is not finite"),
    ({**SPARSE, "X_data": with_number_7_2(SPARSE["X_data"], np.inf)}, "row 7 of X of .* not finite"),
]


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
@pytest.mark.parametrize(("arrays", "sentence"), BAD_ARRAYS)
def test_a_bad_array_is_named(tmp_path, suffix, arrays, sentence):
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    refused(write(tmp_path / f"bad{suffix}", arrays), rf"{sentence}")
    with pytest.raises(UserError, match=rf"bad\{suffix}"):
        load_and_read(tmp_path / f"bad{suffix}")


def test_the_row_of_a_nan_is_counted_in_the_file_also_after_shuffling(tmp_path):
    wrong = X.copy()
    wrong[7, 2] = np.nan
    refused(write(tmp_path / "pool.h5", {"X": wrong, "y": y}), "row 7 of X of", clients=3)


def test_a_number_too_large_for_float32_is_refused_there_alone(tmp_path):
    path = write(tmp_path / "fed.npz", {**DENSE, "X": X * 1e300})
    load(path).rows(0, 4)
    refused(path, "row 0 of X of .* too large for float32", dtype="float32")


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".mat", ".svm.gz", ".csv.bz2"])
def test_a_damaged_file_is_named(tmp_path, suffix):
    path = tmp_path / f"cut{suffix}"
    if suffix in (".h5", ".npz", ".mat"):
        write(path, {**DENSE, "X": np.random.default_rng(0).normal(size=(10, 500))})
    else:
        text = b"".join(b"%d 1:%d\n" % (i % 2, i * 7919) for i in range(5000))
        path.write_bytes((gzip if suffix.endswith("gz") else bz2).compress(text))
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], b"", b"no such format\n"):
        path.write_bytes(part)
        if part or suffix in (".h5", ".npz", ".mat"):
            refused(path, rf"cut\{suffix} cannot be read as", clients=None)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("none.h5", {}, r"data\.path = \".*none\.h5\" is not a file"),
        ("x.xlsx", {}, r"data\.path = \".*x\.xlsx\" has an unknown suffix: it must be one of \.h5, "),
        ("x.npz.gz", {}, r"unknown suffix"),
        ("plain", {}, r"unknown suffix"),
        ("fed.npz", {"clients": 5}, r"data\.clients = 5 contradicts .*fed\.npz, which has sizes of 4 clients"),
        ("fed.npz", {"partition": "iid"}, r"data\.partition = \"iid\" contradicts .*fed\.npz"),
        ("fed.npz", {"target": 1}, r"data\.target = 1 is for CSV and Parquet files only"),
        ("fed.npz", {"zero_based": True}, r"data\.zero_based = true is for LIBSVM files only"),
        ("fed.npz", {"clients": 0}, r"data\.clients = 0 is wrong"),
    ],
)
def test_settings_that_do_not_go_with_the_file_are_refused(tmp_path, name, options, sentence):
    write(tmp_path / "fed.npz", DENSE)
    refused(tmp_path / name, sentence, **options)


def test_clients_may_agree_with_the_file_and_path_must_be_given(tmp_path):
    assert load(write(tmp_path / "fed.npz", DENSE), clients=4).m == 4
    with pytest.raises(UserError, match=r"data\.path is missing"):
        Data.build("file", "data")


@pytest.mark.parametrize(
    "table", [{"name": "linreg-noniid", "clients": 7, "features": 3}, {"name": "quadratic", "clients": 5}]
)
def test_made_clients_are_the_same_wherever_they_are_made(table):
    data = Data.build(table, "data")
    same_rows_however_asked(data.load(0, "float64"))
    one, other = data.load(0, "float64").rows(2, 4), data.load(1, "float64").rows(2, 4)
    assert one[0].shape != other[0].shape or not np.array_equal(one[0], other[0])
    single = data.load(0, "float32").rows(2, 4)
    assert single[0].dtype == np.float32
    assert np.array_equal(single[0], one[0].astype(np.float32))
    own = Data.build({**table, "seed": 1}, "data").load(0, "float64").rows(2, 4)
    assert np.array_equal(own[0], other[0])


def test_making_rows_of_some_clients_makes_no_others(monkeypatch):
    dataset, made = Data.build({"name": "linreg-noniid", "clients": 50}, "data").load(0, "float64"), []
    draw = type(dataset).draw
    monkeypatch.setattr(type(dataset), "draw", lambda self, i: made.append(i) or draw(self, i))
    dataset.rows(10, 13)
    assert made == [10, 11, 12]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"name": "linreg-noniid", "least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ({"name": "linreg-noniid", "least": 0}, r"data\.least = 0 is wrong"),
        ({"name": "quadratic", "mu": 2.0}, r"data: mu = 2\.0 is more than L = 1\.0"),
        ({"name": "quadratic", "mu": 0.0}, r"data\.mu = 0\.0 is wrong"),
        ({"name": "linreg-noniid", "partition": "iid"}, r"unknown key 'data\.partition'"),
    ],
)
def test_values_that_cannot_be_are_refused(table, sentence):
    with pytest.raises(UserError, match=sentence):
        Data.build(table, "data")


def test_partition_of_a_table_is_read_from_its_own_table():
    data = Data.build({"name": "qot", "partition": {"name": "sizes", "least": 0.01}}, "data")
    assert data.partition == Sizes(least=0.01)


WORDS = np.array(["cat", "dog", "ant", "cat", "dog", "ant", "cat", "cat", "dog", "ant"])


@pytest.mark.parametrize("kind", ["U", "S", "h5"])
def test_text_labels_are_numbered_in_sorted_order_and_it_is_said(tmp_path, kind):
    labels = np.array(list(WORDS), dtype=h5py.string_dtype()) if kind == "h5" else WORDS.astype(kind)
    for suffix in (".npz", ".h5"):
        if (kind, suffix) in (("h5", ".npz"), ("U", ".h5")):  # neither format has the other one's type
            continue
        dataset = load(write(tmp_path / f"words{suffix}", {"X": X, "y": labels, "sizes": SIZES}))
        assert list(dataset.rows(0, 4)[1]) == [1, 2, 0, 1, 2, 0, 1, 1, 2, 0]
        assert (dataset.classes, dataset.names) == (3, ("ant", "cat", "dog"))
        assert dataset.notes == ("labels are text, numbered in sorted order: 'ant' is 0, 'cat' is 1, 'dog' is 2",)
        same_rows_however_asked(dataset)


def test_training_and_test_samples_share_the_numbers_of_text_labels(tmp_path):
    test = {**TEST, "y_test": np.array(["ant", "bee", "ant", "ant"])}
    dataset = load(write(tmp_path / "words.npz", {"X": X, "y": WORDS, "sizes": SIZES, **test}))
    assert dataset.names == ("ant", "bee", "cat", "dog")
    assert list(dataset.rows(0, 1)[1]) == [2, 3]
    assert list(dataset.rows_test(0, 4)[1]) == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"y": np.where(WORDS == "ant", " ", WORDS)}, "a label of .* is an empty text: every sample needs a label"),
        ({"y": WORDS, "sizes": SIZES, **TEST}, "some labels of .* are text and some are numbers"),
        ({"y": WORDS.astype(object)}, "y of .* has the type object: .* pickled objects are never loaded"),
        ({"y": y, "sizes": SIZES.astype(str)}, "sizes of .* has the type <U"),
    ],
)
def test_labels_that_are_neither_text_nor_numbers_are_refused(tmp_path, arrays, sentence):
    refused(write(tmp_path / "x.npz", {"X": X, **arrays}), sentence, clients=2)
