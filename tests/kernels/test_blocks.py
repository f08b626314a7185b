"""Blocks of clients: right products, and a client whose bits depend on nobody else."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.symmetric import pack
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import make_dense_block, pad_sizes, plan_blocks
from mpifed.kernels.sparse_products import CSR, make_sparse_block, pair_matrix
from mpifed.problems import gram as spectral
from mpifed.problems.logistic import Logistic
from mpifed.problems.problem import Problem

KINDS = ["dense", "csr"]
DTYPES = [np.float64, np.float32]
SHAPES = [(1, 8, 1), (2, 7, 3), (5, 8, 30), (9, 12, 10), (40, 21, 17), (5, 150, 100)]  # clients, most samples, features


def samples(c, most, n, labels="real", seed=0):
    """(A_i, b_i) of c clients whose sizes have one padded size; half of the features are 0."""
    rng = np.random.default_rng([seed, c, most, n])
    top = int(pad_sizes(np.array([most]))[0])
    A = [rng.standard_normal((d, n)) * (rng.random((d, n)) < 0.5) for d in rng.integers(top - 3, top, c, endpoint=True)]
    return [(a, rng.standard_normal(len(a)) if labels == "real" else rng.integers(0, 2, len(a)) * 1.0) for a in A]


def block_of(clients, kind, dtype=np.float64):
    """The block of these (A_i, b_i)."""
    sizes, n = np.array([len(A) for A, _ in clients]), clients[0][0].shape[1]
    if kind == "csr":
        return make_sparse_block([(sp.csr_array(A), b) for A, b in clients], sizes, n, dtype)
    block = make_dense_block(sizes, n, dtype)
    for i, (A, b) in enumerate(clients):
        block.A[i, : len(A)], block.b[i, : len(b)] = A, b
    return block


def normal(*shape, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_a_plain_loop_over_clients(kind, shape):
    clients = samples(*shape)
    c, n = len(clients), clients[0][0].shape[1]
    block = block_of(clients, kind)
    D = block.b.shape[1]
    X, R, W, S = normal(c, n), normal(c, D), normal(c, 3, n), normal(c, D, 3)
    Z, G, ZW, GW = block.matvec(X), block.vecmat(R), block.matmat(W), block.tmatmat(S)
    common = block.matvec(X[0]), block.matmat(W[0])
    assert [p.shape for p in (Z, G, ZW, GW)] == [(c, D), (c, n), (c, D, 3), (c, 3, n)]
    for i, (A, _) in enumerate(clients):
        d = len(A)
        pairs = [(Z[i, :d], A @ X[i]), (G[i], A.T @ R[i, :d]), (ZW[i, :d], A @ W[i].T), (GW[i], S[i, :d].T @ A)]
        pairs += [(common[0][i, :d], A @ X[0]), (common[1][i, :d], A @ W[0].T), (Z[i, d:], 0), (ZW[i, d:], 0)]
        assert all(np.allclose(found, wanted) for found, wanted in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_from_a_center_keep_their_digits_where_all_samples_are_far_from_0(kind):
    clients = [(30011 + np.arange(8.0)[:, None] % 3 * np.ones(4), np.zeros(8)) for _ in range(2)]
    block = block_of(clients, kind, np.float32)
    squares, distances = block.products.squares(block, np.full((2, 4), 30012, np.float32))
    assert squares[0, 0] == np.float32(4 * 30011**2)
    np.testing.assert_allclose(distances[:, :3], [[4, 0, 4]] * 2, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mini_batch_has_the_matrices_of_its_rows(kind):
    clients, rng = samples(9, 12, 10), np.random.default_rng(2)
    picks, W = rng.integers(0, 9, (9, 3)), rng.standard_normal((9, 3))
    batch = block_of(clients, kind).batch(picks, np.full((9, 3), 1 / 3))
    for i, (A, _) in enumerate(clients):
        rows = A[picks[i]]
        assert np.array_equal(batch.dense(i), rows)
        assert np.allclose(batch.gram(W)[i], (rows.T * W[i]) @ rows)
        assert np.allclose(batch.packed_gram(W)[i], pack((rows.T * W[i]) @ rows))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_block_keeps_rows_labels_weights_and_type(kind, dtype):
    clients = samples(4, 7, 3)
    block = block_of(clients, kind, dtype)
    assert (len(block), block.n) == (4, 3)
    found = (block.b, block.w, block.matvec(np.zeros(3, dtype)), block.vecmat(block.b))
    assert all(array.dtype == dtype for array in found)
    for i, (A, b) in enumerate(clients):
        assert np.array_equal(block.dense(i), A.astype(dtype))
        assert np.array_equal(block.b[i], np.pad(b, (0, 8 - len(b))).astype(dtype))
        assert np.array_equal(block.w[i], np.pad(np.full(len(b), 1 / len(b)), (0, 8 - len(b))).astype(dtype))


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.sets(st.integers(0, 8), min_size=1), again=st.data())
def test_taking_clients_is_slicing(kind, rows, again):
    clients = samples(9, 12, 10)
    rows = np.array(sorted(rows))
    inner = np.array(sorted(again.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))))
    part, wanted = block_of(clients, kind).take(rows).take(inner), [clients[i] for i in rows[inner]]
    direct = block_of(wanted, kind)
    X, R = normal(len(inner), 10), normal(len(inner), 12)
    assert all(np.array_equal(getattr(part, name), getattr(direct, name)) for name in ("b", "d", "w"))
    assert all(np.array_equal(part.dense(i), A) for i, (A, _) in enumerate(wanted))
    assert part.matvec(X).tobytes() == direct.matvec(X).tobytes()
    assert part.vecmat(R).tobytes() == direct.vecmat(R).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_clients_of_several_blocks_are_joined(kind):
    clients = samples(9, 12, 10)
    first, second = block_of(clients[:4], kind), block_of(clients[4:], kind)
    joined = Block.gather([(first, np.array([3, 1])), (second, np.array([0, 4]))])
    direct, X = block_of([clients[i] for i in (3, 1, 4, 8)], kind), normal(4, 10)
    assert all(np.array_equal(getattr(joined, name), getattr(direct, name)) for name in ("b", "d", "w"))
    assert joined.matvec(X).tobytes() == direct.matvec(X).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_once_is_computed_for_the_whole_block_and_sliced(kind):
    block, calls = block_of(samples(9, 12, 10), kind), []

    def twice_the_size(block):
        calls.append(len(block))
        return 2 * block.d

    part = block.take(np.array([1, 4, 8])).take(np.array([0, 2]))
    assert np.array_equal(part.once("size", twice_the_size), 2 * block.d[[1, 8]])
    assert np.array_equal(block.once("size", twice_the_size), 2 * block.d)
    assert calls == [9]


def answers(problem, clients, kind, dtype, X):
    """What a problem says of each client, and the products of its block."""
    block = block_of(clients, kind, dtype)
    R = np.broadcast_to(np.linspace(-1, 1, block.b.shape[1], dtype=dtype), block.b.shape)
    return {
        "matvec": block.matvec(X),
        "vecmat": block.vecmat(np.ascontiguousarray(R)),
        "value": problem.value(block, X),
        "grad": problem.grad(block, X),
        "common value": problem.value(block, X[0] * 0 + 1),
        "common grad": problem.grad(block, X[0] * 0 + 1),
        "lipschitz": problem.lipschitz(block),
        "inverse": problem.majorizer_inverse(block, 0.7, 0.3)(X),
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["logistic", "quadratic"])
def test_the_bits_of_a_client_depend_neither_on_its_neighbours_nor_on_its_place(name, dtype, kind, shape):
    problem = Problem.build(name, "problem")
    clients = samples(*shape, labels="binary")
    if name == "quadratic":
        c, n = shape[0], shape[2]
        clients = [(Q @ Q.T / n + np.eye(n), normal(n, seed=k)) for k, Q in enumerate(normal(c, n, n, seed=0))]
    X = normal(len(clients), clients[0][0].shape[1], dtype=dtype)
    together = answers(problem, clients, kind, dtype, X)
    turned = answers(problem, clients[::-1], kind, dtype, X[::-1].copy())
    for i in range(len(clients)):
        for what, row in answers(problem, clients[i : i + 1], kind, dtype, X[i : i + 1].copy()).items():
            assert together[what].dtype == row.dtype
            assert together[what][i].tobytes() == row[0].tobytes(), f"{what} of client {i} depends on its neighbours"
            assert turned[what][-1 - i].tobytes() == row[0].tobytes(), f"{what} of client {i} depends on its place"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nor_do_they_where_matrices_are_too_large_to_be_formed(dtype, kind, monkeypatch):
    monkeypatch.setattr(spectral, "LARGE", 0)
    clients, problem = samples(9, 12, 10, labels="binary"), Logistic()
    clients[3] = clients[3][0] * 100, clients[3][1]  # takes more iterations than its neighbours
    V = normal(9, 10, dtype=dtype)
    together = problem.majorizer_inverse(block_of(clients, kind, dtype), 0.7, 0.3)(V)
    for i in range(9):
        alone = problem.majorizer_inverse(block_of(clients[i : i + 1], kind, dtype), 0.7, 0.3)(V[i : i + 1])
        assert together[i].tobytes() == alone[0].tobytes()


@given(
    st.lists(st.integers(1, 400), min_size=1), st.integers(1, 5000), st.sampled_from([4, 8]), st.integers(1, 1 << 23)
)
def test_the_plan_puts_every_client_in_one_block_of_one_padded_size_and_about_so_many_bytes(sizes, n, itemsize, block):
    sizes = np.array(sizes)
    assert np.all((pad_sizes(sizes) % 4 == 0) & (pad_sizes(sizes) - sizes >= 0) & (pad_sizes(sizes) - sizes < 4))
    groups = list(plan_blocks(sizes, n, itemsize, block))
    assert sorted(np.concatenate(groups)) == list(range(len(sizes)))
    for group in groups:
        (size,) = set(pad_sizes(sizes[group]))
        assert len(group) == 1 or len(group) * int(size) * n * itemsize <= block + int(size) * n * itemsize / 2


def test_the_plan_makes_few_blocks_and_of_large_matrices_small_ones_with_clients_in_order():
    assert [len(group) for group in plan_blocks(np.full(4000, 20), 20, 8, 1 << 22)] == [1311, 1311, 1311, 67]
    assert [list(group) for group in plan_blocks(np.array([9, 4, 12, 1, 10]), 3, 8)] == [[1, 3], [0, 2, 4]]
    sizes = np.array([9, 4, 12, 11, 10, 1, 2])
    for matrix, groups in ((100, [[1, 5, 6], [0, 2, 3, 4]]), (400, [[0], [1], [2, 3], [4], [5, 6]])):
        assert [list(group) for group in plan_blocks(sizes, 3, 8, 6400, matrix)] == groups, matrix
    assert [list(group) for group in plan_blocks(sizes, 3, 8, 6400, 10**9)] == [[i] for i in range(7)]


def few_numbers(d=40, n=30, share=0.1, seed=0, dtype="float64"):
    """A few random numbers a row, the last column being 1; the fourth row has none."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((d, n)) < share, rng.standard_normal((d, n)), 0)
    X[:, -1] = 1
    X[3] = 0
    return sp.csr_array(X.astype(dtype))


def csr_block(parts):
    return block_of([(X.toarray(), np.zeros(X.shape[0])) for X in parts], "csr")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_sparse_product_gives_the_upper_triangle(dtype):
    A = few_numbers(dtype=dtype)
    P, w = pair_matrix(A), np.linspace(-1, 2, 40).astype(dtype)
    dense = A.toarray()
    assert (P.shape, (P @ w).dtype) == ((30 * 31 // 2, 40), dtype)
    assert np.allclose(P @ w, pack((dense.T * w) @ dense), rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)
    data, columns = np.repeat(A.data, 2) / 2, np.repeat(A.indices, 2)  # a number that is stored in parts counts once
    assert np.allclose(pair_matrix(sp.csr_array((data, columns, 2 * A.indptr), A.shape)).toarray(), P.toarray())


def test_rows_with_many_numbers_are_left_to_a_product_of_dense_rows():
    assert pair_matrix(few_numbers(share=0.6)) is None
    assert pair_matrix(few_numbers(n=12)) is None
    parts, W = [few_numbers(), few_numbers(share=0.9, seed=1)], np.random.default_rng(2).random((2, 40))
    whole = csr_block(parts)  # of clients with and without products
    assert [P is None for P in CSR.pair_products(whole)] == [False, True]
    assert np.allclose(whole.packed_gram(W), pack(whole.gram(W)), rtol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_client_has_the_same_bits_in_every_block_and_those_of_weights_below_0_are_right(share):
    parts = [few_numbers(share=share, seed=seed) for seed in range(5)]
    whole, W = csr_block(parts), np.random.default_rng(9).standard_normal((5, 40))
    found = whole.packed_gram(W)
    assert np.allclose(found, pack(whole.gram(W)), rtol=1e-12, atol=1e-12)
    for picked in ([0, 3], [4], [1, 2, 4]):
        assert whole.take(np.array(picked)).packed_gram(W[picked]).tobytes() == found[picked].tobytes()
        assert csr_block([parts[i] for i in picked]).packed_gram(W[picked]).tobytes() == found[picked].tobytes()
    first = CSR.pair_products(whole)  # computed once for the whole block
    assert CSR.pair_products(whole) is first
    assert CSR.pair_products(whole.take(np.array([2])))[0] is first[2]


def test_where_clients_come_in_groups_blocks_have_whole_ones_and_few_padded_sizes():
    sizes = np.arange(1, 200)
    D = pad_sizes(sizes, 8)
    assert np.all((D % 4 == 0) & (D - sizes >= 0) & (D - sizes < np.maximum(4, sizes / 4 + 1)))
    assert len(set(D)) == 19 < len(set(pad_sizes(sizes)))
    groups = list(plan_blocks(np.full(37, 50), 10, 8, 1, group=8))
    assert [len(group) for group in groups] == [8, 8, 8, 8, 5]
    assert [len(group) for group in plan_blocks(np.full(50, 4), 1, 8, 800, group=8)] == [24, 24, 2]
