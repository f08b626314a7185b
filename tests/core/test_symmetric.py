"""Packed symmetric matrices, row by row and back to the bit; only who has sparse data imports scipy.sparse."""

import sys

import numpy as np
import pytest
import scipy.sparse

from mpifed.core import sparse, symmetric
from tests.helpers.commands import execute

ORDERS = [1, 2, 5, 70]


def matrices(c, n, dtype="float64"):
    H = np.random.default_rng([c, n]).standard_normal((c, n, n)).astype(dtype)
    return H + H.mT


@pytest.fixture(params=["by indices", "row by row"], autouse=True)
def way(request, monkeypatch):
    if request.param == "row by row":
        monkeypatch.setattr(symmetric, "CACHED_ORDER", 0)


def test_the_upper_triangle_is_read_row_by_row():
    H = np.array([[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert symmetric.pack(H).tolist() == [1, 2, 3, 4, 5, 6]
    assert symmetric.pack(H[None]).tolist() == [[1, 2, 3, 4, 5, 6]]
    assert symmetric.unpack(np.array([1, 2, 3, 4, 5, 6]), 3).tolist() == H.tolist()


@pytest.mark.parametrize(("n", "dtype"), list(zip(ORDERS, ["float64", "float32"] * 2, strict=True)))
def test_unpacking_gives_the_matrices_back(n, dtype):
    H = matrices(3, n, dtype)
    rows = symmetric.pack(H)
    assert (rows.shape, rows.dtype) == ((3, symmetric.packed_size(n)), dtype)
    assert symmetric.unpack(rows, n).tobytes() == H.tobytes()
    assert symmetric.unpack(rows[1], n).tobytes() == H[1].tobytes()
    assert symmetric.unpack(rows.reshape(3, 1, -1), n).shape == (3, 1, n, n)


def test_packing_reads_the_upper_triangle_alone_and_any_layout():
    H = matrices(3, 5)
    rows = symmetric.pack(H).tobytes()
    assert symmetric.pack(H + np.tril(np.full((5, 5), np.nan), -1)).tobytes() == rows
    assert symmetric.pack(np.asfortranarray(H)).tobytes() == rows
    assert symmetric.pack(H[::-1])[::-1].tobytes() == rows


@pytest.mark.parametrize(("n", "dtype"), list(zip(ORDERS, ["float32", "float64"] * 2, strict=True)))
def test_the_norm_counts_what_is_off_the_diagonal_twice_and_has_the_same_bits_alone_and_beside_others(n, dtype):
    H = matrices(4, n)
    H[1] = np.diag(np.arange(n) + 1.0)
    H[2] = 0
    assert np.allclose(symmetric.frobenius(symmetric.pack(H), n), np.linalg.norm(H, axis=(1, 2)), rtol=1e-14)
    assert symmetric.frobenius(symmetric.pack(H[0]), n).shape == ()
    rows = symmetric.pack(matrices(9, n, dtype)) * 10.0 ** np.arange(9, dtype=dtype)[:, None]
    together = symmetric.frobenius(rows, n)
    assert together.dtype == dtype
    assert together.tolist() == [float(symmetric.frobenius(row, n)) for row in rows]


@pytest.mark.parametrize("n", [*ORDERS, 10**9 + 7])
def test_the_order_follows_from_the_length(n):
    assert symmetric.order_of_packed(symmetric.packed_size(n)) == n
    with pytest.raises(ValueError, match="no upper triangle"):
        symmetric.order_of_packed(symmetric.packed_size(n) + n)
    assert n > 70 or symmetric.row_starts(n)[-1] == symmetric.packed_size(n)


def test_a_diagonal_is_added_in_place():
    H, rows = np.zeros((2, 3, 3)), np.arange(6.0).reshape(2, 3)
    symmetric.add_diagonal(H, rows)
    symmetric.add_diagonal(H, np.array([0.5, 0.5, 0.5]))
    assert np.array_equal(H, [np.diag(row + 0.5) for row in rows])


def test_names_are_those_of_scipy():
    assert sparse.csr_array is scipy.sparse.csr_array
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = sparse.no_such_name
    for X, found in ((scipy.sparse.eye_array(2), True), (scipy.sparse.csr_matrix((2, 2)), True), (np.eye(2), False)):
        assert sparse.issparse(X) is found


def test_a_dense_run_imports_neither_scipy_nor_numba_for_kernels_of_numpy():
    run = "import mpifed, sys; mpifed.run(rounds=1, kernels='numpy', progress=False); print(*sys.modules)"
    done = execute([sys.executable, "-c", f"{run}; from mpifed.core.sparse import issparse; print(issparse(1))"])
    assert done.code == 0, done.err
    *loaded, sparse = done.out.split()
    assert sparse == "False"
    assert not {name.split(".")[0] for name in loaded} & {"scipy", "numba", "matplotlib", "pandas"}
