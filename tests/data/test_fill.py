"""Samples of clients of any size go into blocks, and come out where they belong."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.data import fill as module
from mpifed.data.blocks import plan
from mpifed.data.fill import Layout, add_tests, fill
from mpifed.data.pool import Pool
from mpifed.data.same_size_blocks import dense_blocks

SIZES = np.array([5, 1, 9, 4, 12, 3, 8])
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(SIZES.sum(), 3)), RNG.integers(0, 2, SIZES.sum()).astype(float)
TEST = (RNG.normal(size=(11, 3)), np.ones(11), None, np.array([2, 0, 3, 1, 0, 5, 0]))


def layout(lo, hi):
    sizes = SIZES[lo:hi]
    return Layout(lo, sizes, list(plan(sizes, 3, 8)), np.dtype(float))


@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("piece", [1, 1 << 26], ids=["client by client", "all at once"])
def test_every_client_finds_its_samples_in_its_block(matrix, piece, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", piece)
    data, lo, hi = Pool(matrix(X), Y, None, SIZES), 2, 7
    where = layout(lo, hi)
    blocks = fill(data, data.rows, where, lambda b: 10 * b)
    assert [len(block) for block in blocks] == [len(group) for group in where.groups]
    ends = np.cumsum(SIZES)
    for group, block in zip(where.groups, blocks, strict=True):
        for position, client in enumerate(lo + group):
            rows = slice(ends[client] - SIZES[client], ends[client])
            assert np.array_equal(block.dense(position), X[rows])
            assert np.array_equal(block.b[position, : SIZES[client]], 10 * Y[rows])


def test_labels_that_a_problem_refuses_end_it():
    def refuse(b):
        raise UserError("labels must be 1")

    data = Pool(X, Y, None, SIZES)
    with pytest.raises(UserError, match="labels must be 1"):
        fill(data, data.rows, layout(0, 7), refuse)


def test_test_samples_belong_to_the_block_of_their_client():
    data, where = Pool(X, Y, None, SIZES, test=TEST), layout(0, 7)
    blocks = fill(data, data.rows, where, np.asarray)
    add_tests(blocks, data, where, np.asarray)
    found = {}
    for group, block in zip(where.groups, blocks, strict=True):
        for positions, test in block.tests:
            found |= {int(group[p]): test.dense(k) for k, p in enumerate(positions)}
    assert {client: len(rows) for client, rows in found.items()} == {0: 2, 2: 3, 3: 1, 5: 5}
    assert np.array_equal(found[2], TEST[0][2:5])


def test_clients_of_equal_size_are_copied_together_and_others_one_by_one():
    sizes = np.array([4, 4, 4, 3, 3, 4, 0, 2])
    rows = np.arange(sizes.sum() * 3.0).reshape(-1, 3)
    home = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [0, 2], [0, 3], [1, 3]])
    blocks = dense_blocks([np.full(4, 4), np.full(4, 4)], 3, float)
    module.copy(rows, rows[:, 0], sizes, home, blocks)
    for (k, j), size, end in zip(home, sizes, np.cumsum(sizes), strict=True):
        assert np.array_equal(blocks[k].A[j, :size], rows[end - size : end])
        assert np.array_equal(blocks[k].b[j, :size], rows[end - size : end, 0])
        assert not blocks[k].A[j, size:].any()
