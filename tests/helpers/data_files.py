"""A small data set, how to write it to a file, and how to compare what is read."""

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data

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


def saved(form, frame, folder, **options):
    """A function that loads the data of a frame, from a file of this form or from memory."""
    if form == "frame":
        return lambda **settings: mpifed.table(frame, **settings).load(0, "float64")
    path = folder / f"x.{form}"
    frame.to_parquet(path, index=False, **options) if form == "parquet" else frame.to_csv(path, index=False)
    return lambda **settings: load(path, **settings)


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


def same_tests_however_asked(dataset):
    whole, ends = dense(dataset.rows_test(0, dataset.m)[0]), np.cumsum(dataset.sizes_test)
    assert len(whole) == ends[-1]
    for i in range(dataset.m):
        assert np.array_equal(dense(dataset.rows_test(i, i + 1)[0]), whole[ends[i] - dataset.sizes_test[i] : ends[i]])


def table_of(dataset):
    rows, labels = dataset.rows(0, dataset.m)
    table = np.column_stack([labels, dense(rows)])
    return table[np.lexsort(table.T)]
