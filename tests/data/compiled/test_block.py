"""Blocks that compiled kernels read: the numbers of numpy, and bits that depend on a client alone."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.symmetric import pack
from mpifed.data.blocks import Block
from mpifed.data.compiled.block import CompiledBlock
from mpifed.data.same_size_blocks import SameSizeBlocks, dense_blocks
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic
from mpifed.problems.nonconvex_logistic import NonconvexLogistic

pytestmark = pytest.mark.fast

SHAPES = [(4, 1), (4, 3), (8, 4), (20, 5), (20, 20), (12, 23), (72, 70), (8, 1027), (100, 130), (4, 9000)]
MODELS = [LeastSquares(), Logistic(mu=0.0), Logistic(mu=0.3), NonconvexLogistic(mu=0.7)]


def pair(D, n, dtype="float64", c=5, seed=0):
    """The same clients, some rows of which are padding, for numpy and for the kernel."""
    rng = np.random.default_rng([D, n, seed])
    A = (rng.standard_normal((c, D, n)) / np.sqrt(n)).astype(dtype)
    b, d = rng.integers(0, 2, (c, D)).astype(dtype), D - rng.integers(0, min(D, 4), c)
    for i, rows in enumerate(d):
        A[i, rows:], b[i, rows:] = 0, 0
    return Block(A, b, d, n), CompiledBlock(A, b, d, n)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("D", "n"), SHAPES)
@pytest.mark.parametrize("problem", MODELS, ids=repr)
def test_the_numbers_are_those_of_numpy(problem, D, n, dtype):
    plain, compiled = pair(D, n, dtype)
    accuracy = 40 * np.finfo(dtype).eps
    X = np.random.default_rng(1).standard_normal((5, n)).astype(dtype)
    for point in (X, X[2]):
        for one, other in zip(problem.evaluate(compiled, point), problem.evaluate(plain, point), strict=True):
            if other is not None:
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                assert np.allclose(one, other, rtol=accuracy, atol=accuracy)
        assert np.allclose(
            problem.hessian(compiled, point)(X), problem.hessian(plain, point)(X), rtol=accuracy, atol=accuracy
        )


@pytest.mark.parametrize(("D", "n"), SHAPES)
def test_every_way_to_a_client_gives_the_same_bits(D, n):
    """Alone, in another place, gathered from two blocks, in a view, and at a point of its own or a common one."""
    problem, (_, block), (_, more) = Logistic(mu=0.3), pair(D, n), pair(D, n, seed=1)
    X = np.random.default_rng(1).standard_normal((5, n))
    whole = problem.value_grad(block, X)
    for rows in (np.array([3]), np.array([4, 1, 2])):
        part = block.take(rows)
        assert type(part) is CompiledBlock
        assert [a.tobytes() for a in problem.value_grad(part, X[rows])] == [a[rows].tobytes() for a in whole]
    both = CompiledBlock.gather([(more, np.array([0, 2])), (block, np.array([1]))])
    assert problem.grad(both, X[[3, 4, 1]])[2].tobytes() == whole[1][1].tobytes()
    assert problem.grad(block.part(slice(1, 3)), X[1:3]).tobytes() == whole[1][1:3].tobytes()
    assert problem.grad(block, X[1])[1].tobytes() == whole[1][1].tobytes()
    assert problem.grad(block, np.asfortranarray(X)).tobytes() == whole[1].tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("D", "n"), [*SHAPES[:-1], (4, 16), (44, 17), (100, 400)])
def test_the_matrices_are_those_of_numpy_and_symmetric_to_the_bit(D, n, dtype):
    """Also with weights below 0, and of clients that are left to a BLAS."""
    plain, compiled = pair(D, n, dtype)
    W = np.random.default_rng(1).standard_normal(plain.b.shape).astype(dtype) * (plain.w > 0)
    G, right = compiled.gram(W), plain.gram(W)
    assert G.dtype == right.dtype == dtype
    assert G.shape == (5, n, n)
    assert np.allclose(G, right, rtol=20 * np.finfo(dtype).eps, atol=20 * np.finfo(dtype).eps)
    assert G.tobytes() == G.mT.copy().tobytes()
    assert compiled.packed_gram(W).tobytes() == pack(G).tobytes()


def test_the_matrix_of_a_client_depends_on_the_client_alone():
    (_, block), problem = pair(20, 33), Logistic(mu=0.3)
    X = np.random.default_rng(2).standard_normal((5, 33))
    H = problem.packed_hess(block, X)
    for rows in (np.array([3]), np.array([4, 1, 2])):
        assert problem.packed_hess(block.take(rows), X[rows]).tobytes() == H[rows].tobytes()
    assert problem.packed_hess(block.part(slice(1, 3)), X[1:3]).tobytes() == H[1:3].tobytes()
    assert problem.packed_hess(block, X[1])[1].tobytes() == H[1].tobytes()


def test_weights_of_other_samples_are_refused():
    _, block = pair(8, 5)
    with pytest.raises(ValueError, match="do not go together"):
        block.packed_gram(np.ones((5, 12)))


def test_mini_batches_are_compiled_too():
    problem, (plain, compiled) = Logistic(mu=0.3), pair(20, 7)
    picks = np.random.default_rng(2).integers(0, 16, (5, 6))
    w = np.arange(30.0).reshape(5, 6) / 9
    X, batch = np.ones((5, 7)), compiled.batch(picks, w)
    assert type(batch) is CompiledBlock
    assert np.allclose(problem.grad(batch, X), problem.grad(plain.batch(picks, w), X), rtol=1e-13, atol=1e-15)
    alone = compiled.take(np.array([1])).batch(picks[1:2], w[1:2])
    assert problem.grad(alone, X[:1])[0].tobytes() == problem.grad(batch, X)[1].tobytes()


def test_a_mini_batch_of_any_size_is_read_to_its_last_row_and_no_further():
    for size in range(1, 10):
        plain, compiled = pair(20, 5)
        picks = np.tile(np.arange(size), (5, 1))
        X = np.random.default_rng(size).standard_normal((5, 5))
        one, other = (
            LeastSquares().grad(block.batch(picks, np.full((5, size), 1 / size)), X) for block in (compiled, plain)
        )
        assert np.allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("z", [0.0, 1e-9, -40.0, 40.0, 600.0, -600.0, 1e4, -1e4, 1e30, -1e30, np.inf, -np.inf, np.nan])
def test_scores_of_any_size_are_silent_and_as_with_numpy(z, dtype):
    one = np.ones((1, 4, 1), dtype)
    blocks = [kind(one, np.array([[0, 1, 0, 1]], dtype), np.array([4]), 1) for kind in (Block, CompiledBlock)]
    with np.errstate(all="raise", under="ignore"):
        plain, compiled = (Logistic(mu=0.0).grad(block, np.array([z], dtype)) for block in blocks)
    assert np.allclose(compiled, plain, rtol=0, atol=4 * np.finfo(dtype).eps, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_logistic_function_is_right_to_the_last_digits(dtype):
    """Its slope at label 0 is the function itself; small values matter as much as large ones."""
    least = -80 if dtype == "float32" else -700
    z = np.linspace(least, 40, 4000).astype(dtype)
    block = CompiledBlock(np.eye(4, dtype=dtype)[None, :, :1], np.zeros((1, 4), dtype), np.array([1]), 1)
    block = block.take(np.zeros(len(z), int))
    found = Logistic(mu=0.0).grad(block, z[:, None])[:, 0]
    exact = 1 / (1 + np.exp(-z.astype(np.longdouble)))
    assert np.abs(found / exact - 1).max() < 6 * np.finfo(dtype).eps


def test_points_of_another_length_are_refused():
    _, block = pair(8, 5)
    for shape in ((6,), (5, 6), (4, 5)):
        with pytest.raises(ValueError, match="do not go together"):
            block.matvec(np.ones(shape))


def test_blocks_of_one_size_keep_the_kernel():
    blocks = dense_blocks([np.array([3, 4]), np.array([4])], 6, "float64", CompiledBlock)
    assert {type(block) for block in blocks} == {CompiledBlock}
    group: SameSizeBlocks = blocks[0].place[0]
    assert type(group.take(np.array([0, 2]))) is CompiledBlock
    assert blocks[0].A.ctypes.data % 64 == 0


class Doubled(Logistic, tag="doubled"):
    """A slope of its own."""

    def slope(self, Z, b):
        return 2 * super().slope(Z, b)


class Weighted(Logistic, tag="weighted"):
    """Residuals of its own."""

    def residual(self, block, Z):
        return 2 * super().residual(block, Z)


class Renamed(Logistic, tag="renamed"):
    """Only the regulariser is another."""

    def weight(self, d):
        return 3 * super().weight(d)


def test_a_loss_of_ones_own_stays_with_numpy():
    assert [problem.compiles() for problem in (Doubled(), Weighted(), Renamed(), Logistic())] == [
        False,
        False,
        True,
        True,
    ]
