"""Clients picked from blocks that stand side by side: in few blocks, and nothing of the others is touched."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.data.fill import by_padded_size
from mpifed.data.same_size_blocks import SameSizeBlocks, dense_blocks
from tests.data.test_blocks import KINDS, block_of, normal, samples

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
    return blocks[0].place[0]


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
        assert np.shares_memory(group.take(np.array([3, 4, 5])).A, group.whole.A)
        assert not np.shares_memory(group.take(np.array([3, 5])).A, group.whole.A)


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
    found = by_padded_size(blocks)
    assert [len(group) for group in found] == [3, 11]
    assert [block for group in found for block in group.blocks] == blocks
