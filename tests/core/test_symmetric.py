"""Packed symmetric matrices: the upper triangle row by row, and back again to the bit."""

import numpy as np
import pytest

from mpifed.core import symmetric

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
