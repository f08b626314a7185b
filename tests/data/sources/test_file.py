"""Data sources: what is read is what is in the file, a client's rows are its own, mistakes are named in a sentence."""

from __future__ import annotations

import bz2
import gzip
import zipfile

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.info import describe
from mpifed.data.partition import Sizes
from mpifed.data.pool import DenseRows, Pool, unit_columns

SIZES = np.array([2, 3, 1, 4])
X = np.where(np.arange(60).reshape(10, 6) % 3 == 0, 0.0, np.arange(60).reshape(10, 6) / 7)
y = np.array([0, 1, 1, 0, 2, 2, 0, 1, 0, 2])
X_TEST, Y_TEST, SIZES_TEST = X[:4] + 1, np.array([3, 0, 0, 1]), np.array([1, 0, 2, 1])


def csr(name, matrix):
    matrix = sp.csr_array(matrix)
    return {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices,
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape),
    }


DENSE = {"X": X, "y": y, "sizes": SIZES}
SPARSE = {**csr("X", X), "y": y, "sizes": SIZES}
TEST = {"X_test": X_TEST, "y_test": Y_TEST, "sizes_test": SIZES_TEST}


def write(path, arrays):
    """The arrays as a file of the format its suffix names."""
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, value in arrays.items():
                file[name] = value
    elif path.suffix == ".npz":
        np.savez_compressed(path, **arrays)
    else:
        scipy.io.savemat(path, arrays)
    return path


def load(path, dtype="float64", seed=0, **options):
    return Data.build({"name": "file", "path": str(path), **options}, "data").load(seed, dtype)


def load_and_read(path, **options):
    dataset = load(path, **options)
    dataset.rows(0, dataset.m)


def refused(path, sentence, **options):
    with pytest.raises(UserError, match=sentence) as caught:
        load_and_read(path, **options)
    assert "\n" not in str(caught.value)


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def same_rows_however_asked(dataset):
    """Clients one by one, and any range of them, give the rows that all clients together give."""
    X_all, y_all = dataset.rows(0, dataset.m)
    assert X_all.shape == (dataset.sizes.sum(), dataset.n)
    assert y_all.shape == (dataset.sizes.sum(),)
    ends = np.cumsum(dataset.sizes)
    for lo in range(dataset.m):
        for hi in (lo, lo + 1, dataset.m):
            a, b = ends[lo] - dataset.sizes[lo], ends[hi - 1] if hi > lo else ends[lo] - dataset.sizes[lo]
            X_part, y_part = dataset.rows(lo, hi)
            assert np.array_equal(dense(X_part), dense(X_all)[a:b])
            assert np.array_equal(y_part, y_all[a:b])


# ---- files with sizes


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


def test_columns_first_arrays_of_npz_are_read_right(tmp_path):
    dataset = load(write(tmp_path / "fed.npz", {**DENSE, "X": np.asfortranarray(X)}))
    assert np.array_equal(dataset.rows(1, 3)[0], X[2:6])


def test_column_vectors_are_labels_and_sizes_too(tmp_path):
    dataset = load(write(tmp_path / "fed.h5", {"X": X, "y": y[:, None], "sizes": SIZES[None, :]}))
    assert np.array_equal(dataset.rows(0, 4)[1], y)


def test_hdf5_reads_only_the_rows_asked_for(tmp_path, monkeypatch):
    dataset, asked = load(write(tmp_path / "fed.h5", DENSE)), []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, at: asked.append((self.name, at)) or read(self, at))
    dataset.rows(1, 3)
    assert asked == [("/X", slice(2, 6))]


@pytest.mark.parametrize(
    ("labels", "classes"), [([0.0, 1.0, 5.0], 6), ([-1, 1, 1], 0), ([0.5, 1, 2], 0), ([True, False, True], 2)]
)
def test_classes_are_counted_where_labels_are_whole_and_not_negative(tmp_path, labels, classes):
    dataset = load(write(tmp_path / "fed.npz", {"X": X[:3], "y": np.array(labels), "sizes": [2, 1]}))
    assert dataset.classes == classes


# ---- files without sizes


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


# ---- text files

LIBSVM = b"""# a comment
1 1:0.5 3:-2e-1 # another
-1 qid:7 2:4

+1
-1 6:1 1:2
"""
WANTED = np.array([[0.5, 0, -0.2, 0, 0, 0], [0, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]])


def table_of(dataset):
    rows, labels = dataset.rows(0, dataset.m)
    table = np.column_stack([labels, dense(rows)])
    return table[np.lexsort(table.T)]


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


# ---- mistakes in files


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


def test_objects_are_never_unpickled(tmp_path):
    with np.errstate(all="ignore"):
        np.savez(tmp_path / "fed.npz", X=np.array([{"a": 1}], dtype=object), y=y)
    refused(tmp_path / "fed.npz", "X of .*fed.npz has the type object")


def test_text_and_groups_in_hdf5_are_refused(tmp_path):
    with h5py.File(tmp_path / "text.h5", "w") as file:
        file["X"], file["y"] = X, np.array([b"cat"] * 10, dtype="S3")
    refused(tmp_path / "text.h5", "y of .*text.h5 has the type")
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file.create_group("X")
    refused(tmp_path / "group.h5", "group.h5 has no X")


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


def test_a_member_cut_short_inside_an_npz_is_named(tmp_path):
    path = write(tmp_path / "fed.npz", DENSE)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:-100] if name == "X.npy" else content)
    refused(path, r"X of .*fed\.npz declares the shape \(10, 6\) of float64, 480 bytes, but holds 380")


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("none.h5", {}, r"data\.path = \".*none\.h5\" is not a file"),
        ("x.parquet", {}, r"data\.path = \".*x\.parquet\" has an unknown suffix: it must be one of \.h5, "),
        ("x.npz.gz", {}, r"unknown suffix"),
        ("plain", {}, r"unknown suffix"),
        ("fed.npz", {"clients": 5}, r"data\.clients = 5 contradicts .*fed\.npz, which has sizes of 4 clients"),
        ("fed.npz", {"partition": "iid"}, r"data\.partition = \"iid\" contradicts .*fed\.npz"),
        ("fed.npz", {"target": 1}, r"data\.target = 1 is for CSV files only"),
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


def test_matlab_7_3_is_refused_with_the_way_out(tmp_path):
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        file["X"] = X
    with (tmp_path / "x.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    refused(tmp_path / "x.mat", r"x\.mat is a MATLAB 7\.3 file: save it with -v7")


# ---- pools and made data


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    kind=st.sampled_from(["dense", "csr", "densified"]),
    seed=st.integers(0, 9),
)
def test_rows_of_a_pool_do_not_depend_on_the_range_asked(sizes, kind, seed):
    rng = np.random.default_rng(seed)
    matrix, d = rng.integers(0, 3, size=(30, 4)), sum(sizes)
    order = rng.permutation(30)[:d]
    source = matrix if kind == "dense" else sp.csr_array(matrix)
    pool = Pool(DenseRows(source) if kind == "densified" else source, np.arange(30), order, np.array(sizes))
    same_rows_however_asked(pool)
    rows, labels = pool.rows(0, pool.m)
    assert sp.issparse(rows) == (kind == "csr") == pool.sparse
    assert np.array_equal(dense(rows), matrix[order])
    assert np.array_equal(labels, order)


def test_unit_columns_have_norm_one_and_zero_columns_stay():
    wanted = np.column_stack([X[:, 1] / np.linalg.norm(X[:, 1]), np.zeros(10)])
    for matrix in (np.column_stack([X[:, 1], np.zeros(10)]), sp.csr_array(np.column_stack([X[:, 1], np.zeros(10)]))):
        assert np.allclose(dense(unit_columns(matrix)), wanted, atol=1e-15)


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


def test_linreg_noniid_is_example_v1():
    dataset = Data.build({"name": "linreg-noniid", "clients": 300}, "data").load(0, "float64")
    assert dataset.n == 100
    assert dataset.classes == 0
    assert dataset.sizes.min() == 50
    assert dataset.sizes.max() == 150
    d = dataset.sizes.sum()
    assert list(np.bincount(dataset.kinds)) == [d // 3, d // 3, d - 2 * (d // 3)]
    rows, b = dataset.rows(0, 300)
    variance = np.array([rows[dataset.kinds == kind].var() for kind in range(3)])
    assert np.allclose(variance, [1, 5 / 3, 100 / 12], rtol=0.03)  # normal, t(5), uniform in [-5, 5]
    assert np.allclose([b[dataset.kinds == kind].var() for kind in range(3)], [1, 5 / 3, 100 / 12], rtol=0.1)
    assert np.abs(rows[dataset.kinds == 2]).max() <= 5
    mixed = [len(set(dataset.kinds[a : a + 50])) for a in np.cumsum(dataset.sizes) - dataset.sizes]
    assert min(mixed) == 3  # every client has all three


def test_quadratics_have_the_eigenvalues_asked_for():
    table = {"name": "quadratic", "clients": 3, "features": 8, "mu": 0.5, "L": 4.0}
    dataset = Data.build(table, "data").load(0, "float64")
    rows, b = dataset.rows(0, 3)
    for Q in rows.reshape(3, 8, 8):
        assert np.array_equal(Q, Q.T)
        assert np.allclose(np.linalg.eigvalsh(Q)[[0, -1]], [0.5, 4.0])
    assert list(dataset.sizes) == [8, 8, 8]
    assert b.shape == (24,)


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


# ---- info


def test_info_tells_sizes_and_classes_of_every_client(tmp_path):
    text = describe(load(write(tmp_path / "fed.h5", {**SPARSE, **TEST})))
    for line in (
        "clients m                 4",
        "samples d                 10",
        "features n                6",
        "test samples              4",
        "classes                   4",
        "matrix                    CSR, 66.7 % nonzero",
        "samples per client        min 1, quartiles 1.75 / 2.5 / 3.25, max 4",
        "classes per client        min 1, quartiles 1.75 / 2.5 / 3, max 3",
    ):
        assert line in text.splitlines()
    assert [line.split() for line in text.splitlines()[-5:]] == [
        ["client", "samples", "test", "classes"],
        ["0", "2", "1", "2"],
        ["1", "3", "0", "3"],
        ["2", "1", "2", "1"],
        ["3", "4", "1", "3"],
    ]


@pytest.mark.parametrize("labels", [[0, 1, 1, 1], [-1, 1, 1, 1]])
def test_info_tells_the_share_of_ones_of_binary_labels(labels, monkeypatch):
    monkeypatch.setattr("mpifed.data.info.BLOCK", 1)  # client by client
    text = describe(Pool(np.ones((4, 2)), np.array(labels), None, np.array([2, 2])))
    assert "share of ones per client  min 0.5, quartiles 0.625 / 0.75 / 0.875, max 1" in text
    assert [line.split()[-1] for line in text.splitlines()[-2:]] == ["0.5", "1"]


def test_info_of_many_clients_has_no_line_a_client():
    text = describe(Data.build({"name": "linreg-noniid", "clients": 21, "features": 2}, "data").load(0, "float64"))
    assert "classes                   none (labels are not classes)" in text
    assert len(text.splitlines()) == 7


def test_partition_of_a_table_is_read_from_its_own_table():
    data = Data.build({"name": "qot", "partition": {"name": "sizes", "least": 0.01}}, "data")
    assert data.partition == Sizes(least=0.01)
