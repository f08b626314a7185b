"""Files as data sets: what is read is what is in the file, and a client's rows are its own."""

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from tests.helpers import data_files as made
from tests.helpers.data_files import DENSE, SIZES, SPARSE, TEST, X, csr, dense, load, refused, write, y

FORMATS = [".h5", ".npz", ".mat"]
POOL = {"X": X, "y": y}
CSR = SPARSE["X_data"]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("arrays", [DENSE, SPARSE], ids=["dense", "csr"])
def test_client_i_owns_the_next_rows_of_the_file_and_of_its_test_samples(tmp_path, suffix, arrays):
    if suffix == ".mat" and arrays is SPARSE:
        arrays = {**DENSE, "X": sp.csc_array(X)}
    dataset = load(write(tmp_path / f"fed{suffix}", arrays), clients=4)  # which may agree with the file
    assert (dataset.m, dataset.n, dataset.classes, dataset.sparse) == (4, 6, 3, arrays is not DENSE)
    assert np.array_equal(dataset.sizes, SIZES)
    assert dataset.sizes_test is None
    rows, labels = dataset.rows(1, 3)
    assert np.array_equal(dense(rows), X[2:6])
    assert np.array_equal(labels, y[2:6])
    made.same_rows_however_asked(dataset)
    dataset = load(write(tmp_path / f"fed{suffix}", {**arrays, **TEST, "owners": SIZES}))
    assert np.array_equal(dataset.sizes_test, made.SIZES_TEST)
    assert (dataset.classes, dataset.owners) == (4, ())  # labels of tests count; an array named owners means nothing
    rows, labels = dataset.rows_test(1, 3)
    assert np.array_equal(rows, made.X_TEST[1:3])
    assert np.array_equal(labels, made.Y_TEST[1:3])


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.bool_, np.float16, ">f8"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_any_kind_become_those_of_the_run(tmp_path, kind, dtype):
    for form in ({"X": X.astype(kind)}, csr("X", X.astype(kind).astype(np.float64))):
        for suffix in (".h5", ".npz"):
            dataset = load(write(tmp_path / f"fed{suffix}", {**form, "y": y.astype(kind), "sizes": SIZES}), dtype)
            rows, labels = dataset.rows(0, 4)
            assert rows.dtype == labels.dtype == dtype
            assert np.array_equal(dense(rows), X.astype(kind).astype(dtype))


def test_classes_are_counted_where_labels_are_whole_and_not_negative(tmp_path):
    for labels, classes in (([0.0, 1.0, 5.0], 6), ([-1, 1, 1], 0), ([0.5, 1, 2], 0), ([True, False, True], 2)):
        columns = {"X": X[:3], "y": np.array(labels)[:, None], "sizes": np.array([[2, 1]])}  # column vectors will do
        dataset = load(write(tmp_path / "fed.npz", columns))
        assert (dataset.classes, dataset.rows(0, 2)[1].tolist()) == (classes, labels)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_without_sizes_is_a_pool_that_the_partition_deals_out(tmp_path, suffix):
    path = write(tmp_path / f"pool{suffix}", POOL)
    dataset = load(path, clients=3)
    made.same_rows_however_asked(dataset)
    table = np.column_stack([y, X])
    assert np.array_equal(made.table_of(dataset), table[np.lexsort(table.T)])
    assert list(load(path, clients=3, partition={"name": "sizes", "sizes": [1, 2, 3]}).sizes) == [1, 2, 3]
    with pytest.raises(UserError, match=r"data\.path is missing"):
        Data.build("file", "data")


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_pools_in_a_file_equal_pools_in_memory_block_by_block(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("mpifed.data.formats.on_disk.BLOCK_BYTES", 100)  # two rows of X
    from_mat = load(write(tmp_path / "pool.mat", POOL), clients=3).rows(0, 3)[0]
    for arrays in (POOL, {**csr("X", X), "y": y}):
        dataset = load(write(tmp_path / f"pool{suffix}", arrays), clients=3)
        assert np.array_equal(dense(dataset.rows(0, 3)[0]), from_mat)
        assert np.array_equal(dense(dataset.rows(2, 3)[0]), from_mat[6:])


def test_a_pool_goes_to_128_clients_unless_told_by_the_seed_of_the_data_or_of_the_run(tmp_path):
    assert load(write(tmp_path / "pool.npz", {"X": np.ones((300, 2)), "y": np.zeros(300)})).m == 128
    path = write(tmp_path / "few.npz", POOL)
    refused(path, r"data\.clients = 128 is more than the 10 samples")
    own = Data.build({"name": "file", "path": str(path), "clients": 3, "seed": 1}, "data").load(7, "float64").rows(0, 3)
    assert np.array_equal(own[0], load(path, clients=3, seed=1).rows(0, 3)[0])
    assert not np.array_equal(own[0], load(path, clients=3, seed=7).rows(0, 3)[0])


BAD_ARRAYS = [  # beside those of tests/hostile
    ({"X": X, "sizes": SIZES}, "has no y; it has X, sizes"),
    ({"X": X.T, "y": y}, "a row for each sample, so write X transposed"),  # libraries of other languages write it so
    ({**POOL, **TEST}, "has test samples but no sizes:"),
    ({**DENSE, "y": np.array(["cat"] * 10, "S"), **TEST}, "some labels of .* are text and some are numbers"),
    ({**DENSE, **TEST, "sizes_test": [1, 0, 0, 0]}, "sizes_test of .* add up to 1, but X_test has 4 rows"),
    ({**POOL, "client": np.where(y > 1, np.nan, y)}, "row 4 of client of .* is not finite: it has a NaN"),
    ({**DENSE, "client": [0] * 5 + [1] * 5}, "client of .* says otherwise than sizes whose the rows are: leave one"),
    ({k: v for k, v in SPARSE.items() if k != "X_indices"}, "has no X_indices: it needs X, or X_data, X_indices"),
    ({**SPARSE, "X_data": np.where(np.isclose(CSR, X[7, 2]), np.inf, CSR)}, "row 7 of X of .* is not finite"),
]


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
@pytest.mark.parametrize(("arrays", "sentence"), BAD_ARRAYS)
def test_a_bad_array_is_named(tmp_path, suffix, arrays, sentence):
    path = write(tmp_path / f"bad{suffix}", {name: np.asarray(value) for name, value in arrays.items()})
    refused(path, rf"bad\{suffix}")
    refused(path, sentence)


def test_a_number_that_is_not_finite_or_too_large_for_float32_is_named_by_its_row(tmp_path):
    wrong = X.copy()
    wrong[7, 2] = np.nan
    refused(write(tmp_path / "pool.h5", {"X": wrong, "y": y}), "row 7 of X of", clients=3)  # also after shuffling
    path = write(tmp_path / "fed.npz", {**DENSE, "X": X * 1e300})
    load(path).rows(0, 4)
    refused(path, "row 0 of X of .* too large for float32", dtype="float32")


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("plain", {}, r"has an unknown suffix: it must be one of \.h5, "),
        ("fed.npz", {"clients": 5}, r"data\.clients = 5 contradicts .*fed\.npz, which has sizes of 4 clients"),
        ("fed.npz", {"partition": "iid"}, r"data\.partition = \"iid\" contradicts .*fed\.npz"),
        ("fed.npz", {"test": 0.2}, r"data\.test = 0\.2 contradicts .*fed\.npz, which has its own test samples"),
        ("fed.npz", {"target": 1}, r"data\.target = 1 is for CSV and Parquet files only"),
        ("fed.npz", {"zero_based": True}, r"data\.zero_based = true is for LIBSVM files only"),
    ],
)
def test_settings_that_do_not_go_with_the_file_are_refused(tmp_path, name, options, sentence):
    write(tmp_path / "fed.npz", {**DENSE, **TEST})
    refused(tmp_path / name, sentence, **options)


@pytest.mark.parametrize(("suffix", "kind"), [(".npz", "U"), (".npz", "S"), (".h5", "S"), (".h5", h5py.string_dtype())])
def test_text_labels_are_numbered_in_sorted_order_and_it_is_said(tmp_path, suffix, kind):
    labels = np.array(["cat", "dog", "ant", "cat", "dog", "ant", "cat", "cat", "dog", "ant"]).astype(kind)
    dataset = load(write(tmp_path / f"words{suffix}", {"X": X, "y": labels, "sizes": SIZES}))
    assert list(dataset.rows(0, 4)[1]) == [1, 2, 0, 1, 2, 0, 1, 1, 2, 0]
    assert (dataset.classes, dataset.names) == (3, ("ant", "cat", "dog"))
    assert dataset.notes == ("labels are text, numbered in sorted order: 'ant' is 0, 'cat' is 1, 'dog' is 2",)
    made.same_rows_however_asked(dataset)
