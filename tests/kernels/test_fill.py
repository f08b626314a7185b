"""Samples of clients of any size go into blocks, and clients picked from blocks side by side come out of few blocks."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.data.dataset import DatasetWrapper
from mpifed.data.pool import Pool
from mpifed.kernels import fill as module
from mpifed.kernels.fill import (
    BlockLayout,
    SameSizeBlocks,
    add_held_out,
    cut_blocks,
    fill_blocks,
    group_by_padded_size,
)
from mpifed.kernels.plan import make_dense_block, plan_blocks
from tests.kernels.test_blocks import KINDS, block_of, normal, samples

SIZES = np.array([5, 1, 9, 4, 12, 3, 8])
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(SIZES.sum(), 3)), RNG.integers(0, 2, SIZES.sum()).astype(float)
TEST = (RNG.normal(size=(11, 3)), np.ones(11), None, np.array([2, 0, 3, 1, 0, 5, 0]))


def dense_blocks(sizes, n, dtype):
    return cut_blocks(make_dense_block(np.concatenate(sizes), n, dtype), sizes)


def layout(lo, hi):
    sizes = SIZES[lo:hi]
    return BlockLayout(lo, sizes, list(plan_blocks(sizes, 3, 8)), np.dtype(float))


@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("piece", [1, 1 << 26], ids=["client by client", "all at once"])
def test_every_client_finds_its_samples_in_its_block(matrix, piece, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", piece)
    data, lo, hi = Pool(matrix(X), Y, None, SIZES), 2, 7
    where = layout(lo, hi)
    blocks = fill_blocks(data, where, lambda b: 10 * b)
    assert [len(block) for block in blocks] == [len(group) for group in where.groups]
    ends = np.cumsum(SIZES)
    for group, block in zip(where.groups, blocks, strict=True):
        for position, client in enumerate(lo + group):
            rows = slice(ends[client] - SIZES[client], ends[client])
            assert np.array_equal(block.dense(position), X[rows])
            assert np.array_equal(block.b[position, : SIZES[client]], 10 * Y[rows])


def test_csr_samples_are_in_memory_once_with_indices_of_32_bits(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    sizes = np.full(40, 50)
    columns = np.tile(np.arange(0, 1000, 20), sizes.sum())
    ends = 50 * np.arange(sizes.sum() + 1)
    data = Pool(sp.csr_array((np.ones(columns.size), columns, ends)), np.zeros(sizes.sum()), None, sizes)
    assert data.train.X.indices.dtype == np.int64
    where = BlockLayout(0, sizes, list(plan_blocks(sizes, data.n, 8)), np.dtype(float))
    needed = 12 * columns.size
    tracemalloc.start()
    blocks = fill_blocks(Narrow(data), where, np.asarray)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(blocks) > 10
    assert {part.dtype for block in blocks for part in (block.A.indices, block.A.indptr)} == {np.dtype(np.int32)}
    assert blocks[0].gather([(blocks[0], np.array([0])), (blocks[1], np.array([0]))]).A.indices.dtype == np.int32
    assert needed < most < 1.5 * needed


class Narrow(DatasetWrapper):
    """Rows whose indices have 32 bits."""

    def read_clients(self, lo, hi, role):
        X, y = super().read_clients(lo, hi, role)
        return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape), y


def test_test_samples_belong_to_the_block_of_their_client():
    data, where = Pool(X, Y, None, SIZES, test=TEST), layout(0, 7)
    blocks = fill_blocks(data, where, np.asarray)
    add_held_out(blocks, data, where, np.asarray, "test")
    found = {}
    for group, block in zip(where.groups, blocks, strict=True):
        for positions, test in block.held["test"]:
            found |= {int(group[p]): test.dense(k) for k, p in enumerate(positions)}
    assert {client: len(rows) for client, rows in found.items()} == {0: 2, 2: 3, 3: 1, 5: 5}
    assert np.array_equal(found[2], TEST[0][2:5])


def test_every_client_is_copied_to_its_place_in_its_block():
    sizes = np.array([4, 4, 4, 3, 3, 4, 0, 2])
    rows = np.arange(sizes.sum() * 3.0).reshape(-1, 3)
    home = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [0, 2], [0, 3], [1, 3]])
    blocks = dense_blocks([np.full(4, 4), np.full(4, 4)], 3, float)
    module.copy_samples(rows, rows[:, 0], sizes, home, blocks)
    for (k, j), size, end in zip(home, sizes, np.cumsum(sizes), strict=True):
        assert np.array_equal(blocks[k].A[j, :size], rows[end - size : end])
        assert np.array_equal(blocks[k].b[j, :size], rows[end - size : end, 0])
        assert not blocks[k].A[j, size:].any()


CLIENTS = samples(11, 12, 10)
GROUPS = [(0, 4), (4, 8), (8, 11)]  # begin and end of each block


def group_of(kind):
    """Three blocks of the clients as one group."""
    if kind == "csr":
        return SameSizeBlocks([block_of(CLIENTS[a:b], kind) for a, b in GROUPS])
    blocks = dense_blocks([np.array([len(A) for A, _ in CLIENTS[a:b]]) for a, b in GROUPS], 10, float)
    for block, (a, b) in zip(blocks, GROUPS, strict=True):
        source = block_of(CLIENTS[a:b], kind)
        block.A[:], block.b[:] = source.A, source.b
    return blocks[0].group_position[0]


@pytest.mark.parametrize("kind", KINDS)
@given(positions=st.sets(st.integers(0, 10), min_size=1))
def test_pieces_hold_the_clients_picked_in_order(kind, positions):
    positions, group, end = np.array(sorted(positions)), group_of(kind), 0
    for first, last, block in group.pieces(positions):
        assert first == end
        assert 0 < len(block) == last - first <= 4
        end = last
        wanted = block_of([CLIENTS[i] for i in positions[first:last]], kind)
        assert all(np.array_equal(getattr(block, name), getattr(wanted, name)) for name in ("b", "d", "w"))
        assert block.matvec(normal(10)).tobytes() == wanted.matvec(normal(10)).tobytes()
    assert end == len(positions)


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_which_all_clients_are_picked_is_given_as_it_is_and_neighbours_are_not_copied(kind):
    group = group_of(kind)
    found = list(group.pieces(np.array([1, 2, 4, 5, 6, 7, 9, 10])))
    assert [(first, last) for first, last, _ in found] == [(0, 2), (2, 6), (6, 8)]
    assert [found[k][2] is group.blocks[k] for k in range(3)] == [False, True, False]
    if kind == "dense":
        assert np.shares_memory(group.take(np.array([3, 4, 5])).A, group.full.A)
        assert not np.shares_memory(group.take(np.array([3, 5])).A, group.full.A)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_once_is_computed_for_the_blocks_touched_alone(kind):
    group, calls = group_of(kind), []

    def twice_the_size(block):
        calls.append(len(block))
        return 2 * block.d

    sizes = np.array([2 * len(A) for A, _ in CLIENTS])
    part = group.take(np.array([1, 2, 9]))
    assert np.array_equal(part.once("size", twice_the_size), sizes[[1, 2, 9]])
    assert calls == [4, 3]
    assert np.array_equal(part.take(np.array([0, 2])).once("size", twice_the_size), sizes[[1, 9]])
    assert np.array_equal(group.blocks[0].once("size", twice_the_size), sizes[:4])
    assert calls == [4, 3]
    assert np.array_equal(group.blocks[1].once("size", twice_the_size), sizes[4:8])
    assert calls == [4, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_one_padded_size_are_grouped(kind):
    blocks = dense_blocks([np.full(3, 8)], 10, float) + dense_blocks([np.full(5, 12), np.full(6, 11)], 10, float)
    if kind == "csr":
        blocks = [block_of(clients, kind) for clients in (samples(3, 8, 10), CLIENTS[:5], CLIENTS[5:])]
    found = group_by_padded_size(blocks)
    assert [len(group) for group in found] == [3, 11]
    assert [block for group in found for block in group.blocks] == blocks
