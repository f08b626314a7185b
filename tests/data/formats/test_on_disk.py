"""HDF5, NPZ and MATLAB files; HDF5 files in which each group is a client."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from mpifed.core.errors import UserError
from tests.helpers.data_files import DENSE, X, load, refused, same_rows_however_asked, same_tests_however_asked, write


def test_hdf5_reads_only_the_rows_asked_for_and_columns_first_arrays_of_npz_are_read_right(tmp_path, monkeypatch):
    columns_first = load(write(tmp_path / "fed.npz", {**DENSE, "X": np.asfortranarray(X)}))
    assert np.array_equal(columns_first.rows(1, 3)[0], X[2:6])
    dataset, asked = load(write(tmp_path / "fed.h5", DENSE)), []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, at: asked.append((self.name, at)) or read(self, at))
    dataset.rows(1, 3)
    assert asked == [("/X", slice(2, 6))]


def test_text_in_x_and_a_heap_of_labels_without_an_end_are_refused(tmp_path):
    path = write(tmp_path / "text.h5", {"X": np.full((10, 2), "cat", dtype=object), "y": np.zeros(10)})
    refused(path, "X of .*text.h5 has the type")
    # the HDF5 library would go over an empty entry of the free space for ever
    path = write(tmp_path / "words.h5", {"X": np.zeros((4, 2)), "sizes": [2, 2], "y": ["cat", "dog"] * 2})
    content = bytearray(path.read_bytes())
    entry = content.index(b"GCOL") + 16
    while int.from_bytes(content[entry : entry + 2], "little"):
        entry += 16 + -(-int.from_bytes(content[entry + 8 : entry + 16], "little") // 8) * 8
    content[entry + 8 : entry + 16] = bytes(8)
    path.write_bytes(content)
    refused(path, "words.h5 cannot be read as HDF5: it is damaged or of another format .a heap is damaged.")


def write_matlab(path, variables):
    """A file as MATLAB 7.3 writes it: HDF5 behind 512 bytes, columns as rows, classes as attributes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            if scipy.sparse.issparse(value):
                columns = value.tocsc()
                parts = {"data": columns.data, "ir": columns.indices.astype("u8"), "jc": columns.indptr.astype("u8")}
                file.create_group(name).attrs.update({"MATLAB_class": b"double", "MATLAB_sparse": np.uint64(len(X))})
                for key, part in parts.items():
                    file[name][key] = part
                continue
            matrix = np.atleast_2d(value) if np.ndim(value) != 1 else np.reshape(value, (-1, 1))
            file[name] = np.array(matrix.shape, "u8") if matrix.size == 0 else matrix.T
            file[name].attrs["MATLAB_class"] = np.bytes_({"f": "double", "u": "char"}.get(matrix.dtype.kind, "int64"))
            if matrix.size == 0:
                file[name].attrs["MATLAB_empty"] = np.uint8(1)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


SQUARE = np.arange(16.0).reshape(4, 4)


@pytest.mark.parametrize("suffix", [".mat", ".h5"])
def test_a_file_of_matlab_7_3_has_a_row_for_each_sample_also_where_x_is_square(tmp_path, suffix):
    path = write_matlab(tmp_path / f"square{suffix}", {"X": SQUARE, "y": [0, 1, 1, 0], "sizes": [1, 3]})
    dataset = load(path)
    assert np.array_equal(dataset.rows(0, 2)[0], SQUARE)
    assert np.array_equal(dataset.rows(1, 2)[0], SQUARE[1:])
    path = write_matlab(tmp_path / f"tall{suffix}", DENSE)
    assert load(path).n == X.shape[1]
    same_rows_however_asked(load(path))
    matrix = scipy.sparse.csr_array(np.where(np.median(X) < X, X, 0))
    path = write_matlab(tmp_path / f"sparse{suffix}", DENSE | {"X": matrix})
    assert np.array_equal(load(path).rows(0, 4)[0].toarray(), matrix.toarray()[: sum(DENSE["sizes"][:4])])


@pytest.mark.parametrize("suffix", [".mat", ".h5"])
def test_structs_of_matlab_7_3_are_clients_and_texts_and_empty_arrays_are_no_numbers(tmp_path, suffix):
    path = write_matlab(
        tmp_path / f"groups{suffix}", {"bonn/X": X[:3], "bonn/y": X[:3, 0], "ulm/X": X[3:4], "ulm/y": [1]}
    )
    with h5py.File(path, "r+") as file:
        file["#refs#/a"] = np.zeros(2)
    assert np.array_equal(load(path).rows(0, 2)[0], X[:4])
    refused(write_matlab(tmp_path / f"text{suffix}", {"X": np.zeros((4, 2), "u2"), "y": np.zeros(4)}), "type object")
    empty = {"X": np.zeros((0, 3)), "y": np.zeros(0)}
    refused(write_matlab(tmp_path / f"no{suffix}", empty), r"has the shape \(0, 0\)")


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_matrix_of_scipy_needs_the_labels_of_a_second_file(tmp_path, form):
    matrix = np.where(np.eye(6) > 0, 2.0, 0)
    matrix[0, 3] = 1
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_array(matrix).asformat(form))
    np.savez(tmp_path / "y.npz", y=np.arange(6) % 2, sizes=[2, 4])
    refused(tmp_path / "x.npz", r'no labels: write numpy\.savez.*, or data\.join = "y\.npz" with y in it')
    joined = {"join": str(tmp_path / "y.npz")}
    if form == "csc":
        refused(tmp_path / "x.npz", r"a matrix of the format 'csc': scipy\.sparse\.save_npz\(file, A\.tocsr", **joined)
    else:
        data = load(tmp_path / "x.npz", **joined)
        assert np.array_equal(data.rows(0, 2)[0].toarray(), matrix)
        assert data.sizes.tolist() == [2, 4]
    (tmp_path / "y.npz").write_text("no archive")
    refused(tmp_path / "x.npz", r"y\.npz cannot be read as NPZ: it is damaged or of another format", **joined)
    (tmp_path / "y.csv").write_text("a,y\n1,2\n")
    refused(tmp_path / "x.npz", r"data\.join adds columns to a table, or arrays", join=str(tmp_path / "y.csv"))


ROWS = np.arange(20.0).reshape(10, 2)
PARTS = {"bonn": slice(0, 3), "aachen": slice(3, 5), "köln": slice(5, 10)}


def written(path, more=(), drop=()):
    with h5py.File(path, "w") as file:
        for name, rows in PARTS.items():
            file[f"{name}/X"] = ROWS[rows]
            file[f"{name}/y"] = np.arange(10)[rows] % 2
        for name, value in more:
            file[name] = value
        for name in drop:
            del file[name]
    return path


def test_groups_are_clients_in_the_order_of_their_names_and_some_may_have_test_samples(tmp_path):
    path = written(tmp_path / "x.h5")
    data = load(path)
    assert (data.owners, data.division) == (("aachen", "bonn", "köln"), "by the groups of the file")
    assert data.sizes.tolist() == [2, 3, 5]
    assert np.array_equal(data.rows(0, 3)[0], ROWS[[3, 4, 0, 1, 2, 5, 6, 7, 8, 9]])
    assert data.rows(1, 2)[1].tolist() == [0, 1, 0]
    same_rows_however_asked(data)
    assert load(path, test=0.4).sizes_test.tolist() == [1, 1, 2]
    tests = [("bonn/X_test", ROWS[:2] + 1), ("bonn/y_test", [1, 0]), ("köln/X_test", ROWS[2:3]), ("köln/y_test", [1])]
    data = load(written(tmp_path / "x.h5", tests))
    assert data.sizes_test.tolist() == [0, 2, 1]
    assert data.rows_test(0, 3)[0].tolist() == [[1, 2], [3, 4], [4, 5]]
    same_tests_however_asked(data)


@pytest.mark.parametrize(
    ("more", "drop", "sentence"),
    [
        ([], ["bonn/y"], r"the group bonn of .*x\.h5 has no y: each group is a client with X and y$"),
        ([("bonn/X_test", ROWS[:1])], [], r"the group bonn of .*x\.h5 has no y_test"),
        ([("ulm/X", ROWS[:, :1]), ("ulm/y", [0] * 10)], [], r"ulm/X of .* has the shape \(10, 1\), but .* \(2, 2\)"),
        ([("ulm/X", 1.0), ("ulm/y", 0)], [], r"ulm/X of .*x\.h5 is one number: X has a row for each sample$"),
        ([("ulm/X", ROWS[:0]), ("ulm/y", np.zeros(0))], [], r"sizes of .* must be whole numbers, .* each at least 1$"),
        ([("ulm/X", ROWS[:4]), ("ulm/y", [0] * 5)], [], r"y of .*x\.h5 has 15 entries, but X has 14 rows"),
        ([("ulm/X", ROWS[:4] * np.nan), ("ulm/y", [0] * 4)], [], r"row 10 of X of .*x\.h5 is not finite"),
        ([("ulm/X", h5py.SoftLink("/bonn/X")), ("ulm/y", [0] * 3)], [], r"X of .*x\.h5 is a link: copy the data into"),
    ],
)
def test_a_wrong_group_is_named(tmp_path, more, drop, sentence):
    refused(written(tmp_path / "x.h5", more, drop), sentence)


def test_what_does_not_fit_in_memory_is_told_with_its_size_and_not_called_damaged(tmp_path, monkeypatch):
    """Rows are in memory twice while a partition puts them in order; what fails all the same is no other format."""
    path = write(tmp_path / "x.npz", {"X": np.ones((40, 6)), "y": np.zeros(40)})
    monkeypatch.setattr("mpifed.core.memory.SMALL", 0)
    monkeypatch.setattr("mpifed.core.memory.free", lambda: 3000)
    with pytest.raises(UserError, match=r"^reading 40 of 40 rows of X of .*x.npz would take 0 MB of memory, but only"):
        load(path, clients=2).rows(0, 2)
    monkeypatch.setattr("mpifed.core.memory.free", lambda: 4000)
    assert load(path, clients=2).rows(0, 2)[0].sum() == 240

    def full(*args):
        raise MemoryError("Unable to allocate 3.2 GiB")

    monkeypatch.setattr("mpifed.data.formats.on_disk.at_most", full)
    refused(path, r"x\.npz does not fit in memory, unless it is damaged: unable to allocate 3\.2 gib", clients=2)
