"""Products of nonzeros, computed once: Gram matrices with any weights, and the same bits in every block."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.symmetric import pack
from mpifed.data.sparse_block import products, sparse_block


def rows(d=40, n=30, share=0.1, seed=0, dtype="float64"):
    """A few random numbers a row, the last column being 1; the fourth row has none."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((d, n)) < share, rng.standard_normal((d, n)), 0)
    X[:, -1] = 1
    X[3] = 0
    return sp.csr_array(X.astype(dtype))


def block(parts):
    sizes = np.full(len(parts), parts[0].shape[0])
    return sparse_block([(X, np.zeros(X.shape[0])) for X in parts], sizes, parts[0].shape[1], "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_sparse_product_gives_the_upper_triangle(dtype):
    A = rows(dtype=dtype)
    P, w = products(A), np.linspace(-1, 2, 40).astype(dtype)
    dense = A.toarray()
    assert (P.shape, (P @ w).dtype) == ((30 * 31 // 2, 40), dtype)
    assert np.allclose(P @ w, pack((dense.T * w) @ dense), rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)
    data, columns = np.repeat(A.data, 2) / 2, np.repeat(A.indices, 2)  # a number that is stored in parts counts once
    assert np.allclose(products(sp.csr_array((data, columns, 2 * A.indptr), A.shape)).toarray(), P.toarray())


def test_rows_with_many_numbers_are_left_to_a_product_of_dense_rows():
    assert products(rows(share=0.6)) is None
    assert products(rows(n=12)) is None
    parts, W = [rows(), rows(share=0.9, seed=1)], np.random.default_rng(2).random((2, 40))
    whole = block(parts)  # of clients with and without products
    assert [P is None for P in whole.products()] == [False, True]
    assert np.allclose(whole.packed_gram(W), pack(whole.gram(W)), rtol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_client_has_the_same_bits_in_every_block_and_those_of_weights_below_0_are_right(share):
    parts = [rows(share=share, seed=seed) for seed in range(5)]
    whole, W = block(parts), np.random.default_rng(9).standard_normal((5, 40))
    found = whole.packed_gram(W)
    assert np.allclose(found, pack(whole.gram(W)), rtol=1e-12, atol=1e-12)
    for picked in ([0, 3], [4], [1, 2, 4]):
        assert whole.take(np.array(picked)).packed_gram(W[picked]).tobytes() == found[picked].tobytes()
        assert block([parts[i] for i in picked]).packed_gram(W[picked]).tobytes() == found[picked].tobytes()
    first = whole.products()  # computed once for the whole block
    assert whole.products() is first
    assert whole.take(np.array([2])).products()[0] is first[2]
