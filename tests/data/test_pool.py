"""Pools of samples that are dealt to clients."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.data.pool import DenseRows, Pool, unit_columns
from tests.helpers.data_files import X, dense, same_rows_however_asked


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
    column = X[:, [1]] * [1, 0]
    for matrix in (column, sp.csr_array(column)):
        assert np.allclose(dense(unit_columns(matrix)), column / np.linalg.norm(X[:, 1]), atol=1e-15)
