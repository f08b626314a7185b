"""Blocks of CSR samples for compiled kernels: the matrices of numpy, and bits that depend on a client alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.symmetric import pack
from mpifed.data.compiled.compiling import kernel
from mpifed.data.compiled.sparse_block import CompiledSparseBlock
from mpifed.data.same_size_blocks import SameSizeBlocks
from mpifed.data.sparse_block import sparse_block
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax
from tests.data.compiled.test_block import DTYPES, close

pytestmark = pytest.mark.fast

SHAPES = [(4, 1), (4, 3), (8, 15), (20, 33), (3, 70)]


def both(d, n, dtype="float64", m=5):
    """Clients with about d samples, some of which have no nonzeros, for numpy and for the kernel."""
    rng, sizes = np.random.default_rng([d, n]), d - np.arange(m) % 3 % d
    sizes = np.where(-(-sizes // 4) == -(-d // 4), sizes, d)
    parts = []
    for size in sizes:
        X = rng.standard_normal((size, n)) * (rng.random((size, n)) < 0.3)
        X[0] = 0
        parts.append((sp.csr_array(X.astype(dtype)), rng.integers(0, 2, size).astype(dtype)))
    return [sparse_block(parts, sizes, n, dtype, *kind) for kind in ((), (CompiledSparseBlock,))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("d", "n"), SHAPES)
def test_the_matrices_are_those_of_numpy_and_symmetric_to_the_bit(d, n, dtype):
    plain, compiled = both(d, n, dtype)
    W = np.random.default_rng(1).standard_normal(plain.b.shape).astype(dtype) * (plain.w > 0)
    G = compiled.gram(W)
    assert (G.dtype, G.shape) == (dtype, (len(plain), n, n))
    assert close(G, plain.gram(W), 20 * np.finfo(dtype).eps)
    assert G.tobytes() == G.mT.copy().tobytes()


@pytest.mark.parametrize(("d", "n"), SHAPES)
def test_every_way_to_a_client_gives_the_same_bits(d, n):
    _, block = both(d, n)
    problem, X = Logistic(mu=0.3), np.random.default_rng(2).standard_normal((len(block), n))
    H = problem.hess(block, X)
    assert problem.packed_hess(block, X).tobytes() == pack(H).tobytes()
    for rows in (np.array([3]), np.array([4, 1, 2])):
        part = block.take(rows)
        assert type(part) is CompiledSparseBlock
        assert problem.hess(part, X[rows]).tobytes() == H[rows].tobytes()
    SameSizeBlocks([block])
    assert problem.hess(block.place[0].take(np.array([1, 2])), X[1:3]).tobytes() == H[1:3].tobytes()
    assert problem.hess(block, X[1])[1].tobytes() == H[1].tobytes()


def test_softmax_has_them_as_well():
    plain, compiled = both(20, 7)
    X = np.random.default_rng(3).standard_normal((5, 16))
    assert np.allclose(Softmax().hess(compiled, X), Softmax().hess(plain, X), rtol=1e-12, atol=1e-14)


def test_rows_that_name_a_column_twice_or_in_any_order_are_those_of_the_matrix():
    A = sp.csr_array((np.arange(1.0, 8), [4, 0, 4, 3, 1, 0, 2], [0, 3, 3, 5, 7]), shape=(4, 5))
    block = sparse_block([(A, np.zeros(4))], np.array([4]), 5, float, CompiledSparseBlock)
    W = np.array([[1.0, 2, 3, -4]])
    assert np.allclose(block.gram(W)[0], A.toarray().T @ (W[0][:, None] * A.toarray()), rtol=1e-14)
    assert not block.A.has_canonical_format


def test_indices_of_64_bits_are_read_too_and_samples_that_do_not_fit_are_refused():
    _, block = both(8, 15)
    A, W = block.A, np.ones(block.b.shape)
    wide = kernel(A.dtype, "pairs")(A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64), W, 15)
    assert wide.tobytes() == block.packed_gram(W).tobytes()
    with pytest.raises(ValueError, match="do not go together"):
        kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W[:, :-1].copy(), 15)
