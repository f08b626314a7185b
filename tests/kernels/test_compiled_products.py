"""Blocks that compiled kernels read: the numbers of numpy, and bits that depend on a client alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.symmetric import pack
from mpifed.kernels.blocks import Block
from mpifed.kernels.compiling import CompiledProducts, CompiledSparseProducts, get_kernel
from mpifed.kernels.fill import SameSizeBlocks, cut_blocks
from mpifed.kernels.plan import make_dense_block
from mpifed.kernels.products import DENSE
from mpifed.kernels.sparse_products import make_sparse_block
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic, NonconvexLogistic
from mpifed.problems.softmax import Softmax

pytestmark = pytest.mark.fast

SHAPES = [(4, 1), (4, 3), (8, 4), (20, 5), (20, 20), (12, 23), (72, 70), (8, 1027), (100, 130), (4, 9000)]
SPARSE_SHAPES = [(4, 1), (4, 3), (8, 15), (20, 33), (3, 70)]
MODELS = [LeastSquares(), Logistic(mu=0.0), Logistic(mu=0.3), NonconvexLogistic(mu=0.7)]
COMPILED = CompiledProducts()
DTYPES = ["float64", pytest.param("float32", marks=pytest.mark.slow)]  # each type is compiled


def pair(D, n, dtype="float64", c=5, seed=0):
    """The same clients, some rows of which are padding, for numpy and for the kernel."""
    rng = np.random.default_rng([D, n, seed])
    A = (rng.standard_normal((c, D, n)) / np.sqrt(n)).astype(dtype)
    b, d = rng.integers(0, 2, (c, D)).astype(dtype), D - rng.integers(0, min(D, 4), c)
    for i, rows in enumerate(d):
        A[i, rows:], b[i, rows:] = 0, 0
    return Block(A, b, d, n), Block(A, b, d, n, products=COMPILED)


def sparse_pair(d, n, dtype="float64", m=5, seed=0):
    """Clients with about d samples, some of which have no nonzeros, for numpy and for the kernel."""
    rng, sizes = np.random.default_rng([d, n, seed]), d - np.arange(m) % 3 % d
    sizes = np.where(-(-sizes // 4) == -(-d // 4), sizes, d)
    parts = []
    for size in sizes:
        X = rng.standard_normal((size, n)) * (rng.random((size, n)) < 0.3)
        X[0] = 0
        parts.append((sp.csr_array(X.astype(dtype)), rng.integers(0, 2, size).astype(dtype)))
    return [make_sparse_block(parts, sizes, n, dtype, *products) for products in ((), (CompiledSparseProducts(),))]


def close(one, other, accuracy):
    return (one.dtype, one.shape) == (other.dtype, other.shape) and np.allclose(one, other, accuracy, accuracy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("D", "n"), SHAPES)
def test_the_numbers_are_those_of_numpy(D, n, dtype):
    plain, compiled = pair(D, n, dtype)
    X = np.random.default_rng(1).standard_normal((5, n)).astype(dtype)
    for problem in MODELS:
        for point in (X, X[2]):
            pairs = list(zip(problem.evaluate(compiled, point), problem.evaluate(plain, point), strict=True))
            pairs.append((problem.hessian(compiled, point)(X), problem.hessian(plain, point)(X)))
            assert all(other is None or close(one, other, 40 * np.finfo(dtype).eps) for one, other in pairs)


@pytest.mark.parametrize(
    ("make", "D", "n"), [*((pair, *shape) for shape in SHAPES), *((sparse_pair, *shape) for shape in SPARSE_SHAPES)]
)
def test_every_way_to_a_client_gives_the_same_bits(make, D, n):
    """Alone, in another place, gathered from two blocks, in a view, and at a point of its own or a common one."""
    problem, (_, block), (_, more) = Logistic(mu=0.3), make(D, n), make(D, n, seed=1)
    X = np.random.default_rng(1).standard_normal((5, n))
    whole = problem.value_grad(block, X)
    H = problem.packed_hess(block, X) if n < 100 else None
    middle = block.part(slice(1, 3)) if make is pair else block.take(np.array([1, 2]))
    for rows in (np.array([3]), np.array([4, 1, 2])):
        part = block.take(rows)
        assert type(part) is type(block)
        assert [a.tobytes() for a in problem.value_grad(part, X[rows])] == [a[rows].tobytes() for a in whole]
        assert H is None or problem.packed_hess(part, X[rows]).tobytes() == H[rows].tobytes()
    if H is not None:
        assert pack(problem.hess(block, X)).tobytes() == H.tobytes()
        assert problem.packed_hess(middle, X[1:3]).tobytes() == H[1:3].tobytes()
        assert problem.packed_hess(block, X[1])[1].tobytes() == H[1].tobytes()
    both = type(block).gather([(more, np.array([0, 2])), (block, np.array([1]))])
    assert problem.grad(both, X[[3, 4, 1]])[2].tobytes() == whole[1][1].tobytes()
    assert problem.grad(middle, X[1:3]).tobytes() == whole[1][1:3].tobytes()
    assert problem.grad(block, X[1])[1].tobytes() == whole[1][1].tobytes()
    assert problem.grad(block, np.asfortranarray(X)).tobytes() == whole[1].tobytes()
    SameSizeBlocks([block])
    assert (
        H is None
        or problem.packed_hess(block.group_position[0].take(np.array([1, 2])), X[1:3]).tobytes() == H[1:3].tobytes()
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("make", "D", "n"),
    [*((pair, *shape) for shape in (*SHAPES[:-3], (100, 130), (4, 16), (44, 17), (100, 400)))]
    + [pytest.param(pair, 8, 1027, marks=pytest.mark.slow)]
    + [(sparse_pair, *shape) for shape in SPARSE_SHAPES],
)
def test_the_matrices_are_those_of_numpy_and_symmetric_to_the_bit(make, D, n, dtype):
    """Also with weights below 0, and of clients that are left to a BLAS."""
    plain, compiled = make(D, n, dtype)
    W = np.random.default_rng(1).standard_normal(plain.b.shape).astype(dtype) * (plain.w > 0)
    G = compiled.gram(W)
    assert close(G, plain.gram(W), 20 * np.finfo(dtype).eps)
    assert G.tobytes() == G.mT.copy().tobytes()
    assert compiled.packed_gram(W).tobytes() == pack(G).tobytes()
    if (make, D) == (sparse_pair, 20):
        X = np.random.default_rng(3).standard_normal((5, 2 * (n + 1))).astype(dtype)
        assert close(*(Softmax().hess(block, X) for block in (compiled, plain)), 200 * np.finfo(dtype).eps)


def test_points_and_weights_of_other_samples_are_refused():
    _, block = pair(8, 5)
    with pytest.raises(ValueError, match="do not go together"):
        block.packed_gram(np.ones((5, 12)))
    for shape in ((6,), (5, 6), (4, 5)):
        with pytest.raises(ValueError, match="do not go together"):
            block.matvec(np.ones(shape))


def test_mini_batches_of_any_size_are_compiled_too_and_read_to_their_last_row_and_no_further():
    problem, (plain, compiled) = Logistic(mu=0.3), pair(20, 7)
    picks = np.random.default_rng(2).integers(0, 16, (5, 6))
    w = np.arange(30.0).reshape(5, 6) / 9
    X, batch = np.ones((5, 7)), compiled.batch(picks, w)
    assert batch.products is COMPILED
    assert np.allclose(problem.grad(batch, X), problem.grad(plain.batch(picks, w), X), rtol=1e-13, atol=1e-15)
    alone = compiled.take(np.array([1])).batch(picks[1:2], w[1:2])
    assert problem.grad(alone, X[:1])[0].tobytes() == problem.grad(batch, X)[1].tobytes()
    blocks = pair(20, 5)
    for size in range(1, 10):
        picks, w = np.tile(np.arange(size), (5, 1)), np.full((5, size), 1 / size)
        X = np.random.default_rng(size).standard_normal((5, 5))
        one, other = (LeastSquares().grad(block.batch(picks, w), X) for block in blocks)
        assert np.allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_logistic_function_is_right_to_the_last_digits_and_silent_at_scores_of_any_size(dtype):
    """Its slope at label 0 is the function itself; small values matter as much as large ones."""
    eps = np.finfo(dtype).eps
    z = np.linspace(-80 if dtype == "float32" else -700, 40, 4000).astype(dtype)
    A = np.eye(4, dtype=dtype)[None, :, :1]
    block = Block(A, np.zeros((1, 4), dtype), np.array([1]), 1, products=COMPILED)
    found = Logistic(mu=0.0).grad(block.take(np.zeros(len(z), int)), z[:, None])[:, 0]
    assert np.abs(found * (1 + np.exp(-z.astype(np.longdouble))) - 1).max() < 6 * eps
    one, b = np.ones((1, 4, 1), dtype), np.array([[0, 1, 0, 1]], dtype)
    for z in (0.0, 1e-9, -40.0, 40.0, 600.0, -600.0, 1e4, -1e4, 1e30, -1e30, np.inf, -np.inf, np.nan):
        with np.errstate(all="raise", under="ignore"):
            plain, compiled = (
                Logistic(mu=0.0).grad(Block(one, b, np.array([4]), 1, products=products), np.array([z], dtype))
                for products in (DENSE, COMPILED)
            )
        assert np.allclose(compiled, plain, rtol=0, atol=4 * eps, equal_nan=True), z


def test_blocks_of_one_size_keep_the_kernel():
    blocks = cut_blocks(make_dense_block(np.array([3, 4, 4]), 6, "float64", COMPILED), [[0, 1], [2]])
    taken = blocks[0].group_position[0].take(np.array([0, 2]))
    assert {block.products for block in (*blocks, taken)} == {COMPILED}
    assert blocks[0].A.ctypes.data % 64 == 0


@pytest.mark.parametrize(("method", "compiles"), [("slope", False), ("residual", False), ("weight", True)])
def test_a_loss_of_ones_own_stays_with_numpy_and_a_regulariser_does_not(method, compiles):
    own = type(Logistic)("Own", (Logistic,), {method: lambda self, *words: None}, tag=f"own {method}")
    assert (own().compiles(), Logistic().compiles()) == (compiles, True)


def test_columns_named_twice_or_in_any_order_or_by_64_bits_are_read_and_samples_that_do_not_fit_are_refused():
    A = sp.csr_array((np.arange(1.0, 8), [4, 0, 4, 3, 1, 0, 2], [0, 3, 3, 5, 7]), shape=(4, 5))
    block = make_sparse_block([(A, np.zeros(4))], np.array([4]), 5, float, CompiledSparseProducts())
    W = np.array([[1.0, 2, 3, -4]])
    assert np.allclose(block.gram(W)[0], A.toarray().T @ (W[0][:, None] * A.toarray()), rtol=1e-14)
    assert not block.A.has_canonical_format
    _, block = sparse_pair(8, 15)
    A, W = block.A, np.ones(block.b.shape)
    wide = get_kernel(A.dtype, "pairs")(A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64), W, 15)
    assert wide.tobytes() == block.packed_gram(W).tobytes()
    with pytest.raises(ValueError, match="do not go together"):
        get_kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W[:, :-1].copy(), 15)
