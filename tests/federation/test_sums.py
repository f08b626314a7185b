"""Sums over clients, also as rows come: the same bits for any number of ranks, right to rounding, little to send."""

import math
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.federation import sums
from mpifed.federation.request import RowBuffer
from mpifed.federation.sums import TreeSum, find_subtrees, sum_subtrees
from tests.contract.wrong import Descent
from tests.helpers.algorithm_runs import M, N, Run, build

MOST = 70  # clients in random cases


def held_by(rows, ids, cut, m):
    """What ranks that host [cut[r], cut[r + 1]) have of the rows of the clients ``ids`` (None: all): subtrees, sums."""
    for lo, hi in pairwise(cut):
        tree = sums.find_subtrees(lo, hi, m)
        a, b = (lo, hi) if ids is None else np.searchsorted(ids, [lo, hi])
        yield tree, sums.sum_subtrees(rows[a:b], None if ids is None else ids[a:b], lo, tree)


def spread(rows, ids, cut, m):
    """The sum as the server makes it of what ranks have."""
    trees, parts = zip(*held_by(rows, ids, cut, m), strict=True)
    return sums.sum_root(np.concatenate(parts), [node for tree in trees for node in tree])


def climbed(rows, ids, cut, m, rng):
    """The same sum, where in random order two ranks merge what they have until one is left."""
    held = [dict(zip(tree, parts, strict=True)) for tree, parts in held_by(rows, ids, cut, m)]
    while len(held) > 1:
        mine, theirs = (held.pop(int(rng.integers(len(held)))) for _ in range(2))
        vectors = [*mine.values(), *theirs.values()]
        numbers = {node: k for k, node in enumerate(mine)}
        arrived = {node: k for k, node in enumerate(theirs, len(mine))}
        for a, b in sums.merge(numbers, arrived):
            vectors[max(a, b)] = vectors[a] + vectors[b]
        held.append({node: vectors[k] for node, k in numbers.items()})
    ((root, total),) = held[0].items()
    assert root == (sums.tree_depth(m), 0)
    return total


def cut_points(m, most=MOST):
    """0, some clients, m: where the runs of ranks begin and end."""
    inner = st.sets(st.integers(1, m - 1), max_size=most) if m > 1 else st.just(set())
    return inner.map(lambda places: [0, *sorted(places), m])


@st.composite
def cases(draw):
    """m clients, wild rows (c, N) of those who are there, two ways to cut the clients into runs."""
    m = draw(st.integers(1, MOST))
    chosen = draw(st.none() | st.sets(st.integers(0, m - 1)))
    ids = None if chosen is None else np.array(sorted(chosen), np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    shape = (m if ids is None else len(ids), draw(st.integers(1, 5)))
    rows = (rng.standard_normal(shape) * 10.0 ** rng.integers(-18, 18, shape)).astype(dtype)
    rows[rng.random(shape) < 0.2] = draw(st.sampled_from([-0.0, 0.0, 1.0, -1e-40]))
    return m, ids, rows, draw(cut_points(m)), draw(cut_points(m))


@given(cases(), st.integers(0, 2**32))
def test_the_bits_depend_neither_on_how_clients_are_cut_into_ranks_nor_on_who_merges_first(case, seed):
    m, ids, rows, one, other = case
    rows.setflags(write=False)  # they are left as they are
    alone = spread(rows, ids, [0, m], m)
    assert alone.dtype == rows.dtype
    assert alone.tobytes() == spread(rows, ids, one, m).tobytes() == spread(rows, ids, other, m).tobytes()
    assert alone.tobytes() == climbed(rows, ids, one, m, np.random.default_rng(seed)).tobytes()


@given(m=st.integers(1, 300), data=st.data())
def test_what_is_merged_are_again_the_largest_subtrees(m, data):
    lo, mid, hi = sorted(data.draw(st.tuples(*[st.integers(0, m)] * 3)))
    held = {node: k for k, node in enumerate(sums.find_subtrees(lo, mid, m) if lo < mid < m else [])}
    arrived = {node: k for k, node in enumerate(sums.find_subtrees(mid, hi, m) if mid < hi else [], len(held))}
    sums.merge(held, arrived)
    if lo < mid < hi:
        assert sorted(held, key=lambda node: node[1] << node[0]) == sums.find_subtrees(lo, hi, m)


@given(cases())
def test_the_sum_is_the_exact_one_to_rounding_and_naming_everyone_is_the_same_as_naming_nobody(case):
    m, ids, rows, cut, _ = case
    for column, value in zip(rows.T.astype(float), spread(rows, ids, cut, m), strict=True):
        bound = sums.tree_depth(m) * np.finfo(rows.dtype).eps * math.fsum(abs(column))
        assert abs(float(value) - math.fsum(column)) <= bound
    everyone = np.arange(m) if ids is None else ids
    full = np.zeros((m, rows.shape[1]), rows.dtype)
    full[everyone] = rows
    assert np.array_equal(spread(rows, everyone, cut, m), spread(full, None, cut, m))
    assert ids is not None or spread(rows, None, cut, m).tobytes() == spread(rows, everyone, cut, m).tobytes()


@pytest.mark.parametrize("ids", [None, np.arange(5), np.array([3]), np.array([], np.int64)], ids=str)
def test_a_sum_of_zeros_is_positive_zero(ids):
    rows = np.full((5 if ids is None else len(ids), 2), -0.0)
    for cut in ([0, 5], [0, 1, 2, 3, 4, 5], [0, 4, 5], [0, 3, 5]):  # a rank of three has two subtrees
        assert spread(rows, ids, cut, 5).tobytes() == np.zeros(2).tobytes()


@given(st.data())
def test_the_subtrees_of_all_ranks_tile_the_tree(data):
    m = data.draw(st.integers(1, 300))
    for lo, hi in pairwise(data.draw(cut_points(m, 12))):
        at = lo
        for level, place in sums.find_subtrees(lo, hi, m):
            assert place << level == at  # in order, without gap, each a node of the tree
            at = (place + 1) << level
        assert at == (hi if hi < m else 1 << sums.tree_depth(m))  # the last rank also has the empty leaves


@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=200), data=st.data())
def test_every_rank_has_a_client_whatever_the_sizes(sizes, data):
    ranks = data.draw(st.integers(1, len(sizes)))
    cut = sums.rank_offsets(np.array(sizes), ranks)
    assert (len(cut), cut[0], cut[-1]) == (ranks + 1, 0, len(sizes))
    assert all(a < b for a, b in pairwise(cut))


@pytest.mark.parametrize("ranks", [2, 3, 16, 63])
@pytest.mark.parametrize("m", [64, 1000, 10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_ranks_have_samples_within_an_eighth_of_their_share_and_few_subtrees_however_many_clients(m, ranks):
    sizes = np.random.default_rng(m).integers(50, 150, m, endpoint=True)
    cut = sums.rank_offsets(sizes, ranks)
    share = sizes.sum() / ranks
    assert abs(np.add.reduceat(sizes, cut[:-1]) - share).max() <= share / 8 + sizes.max()
    assert m < 128 or max(len(sums.find_subtrees(lo, hi, m)) for lo, hi in pairwise(cut)) <= 8
    if ranks in (2, 16):  # of equal clients each rank has one subtree
        assert all(
            len(sums.find_subtrees(lo, hi, 128)) == 1 for lo, hi in pairwise(sums.rank_offsets(np.full(128, 10), ranks))
        )


WIDE = 20  # numbers of a reply


def added(ids, blocks, tree, dtype="float64", room=1):
    """What the running sums make of replies that come in blocks, of which so many are added up at once."""
    found, first = TreeSum(ids, dtype, tree), 0
    with patch.object(sums, "ROOM", room * WIDE * np.dtype(dtype).itemsize):
        for block in blocks:
            found.put(slice(first, first + len(block)), (block[:, :5], block[:, 5:]))
            first += len(block)
    return found


@given(
    m=st.integers(2, 40),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    share=st.floats(0.1, 1.0),
    step=st.integers(1, 7),
    room=st.integers(0, 17),
    dtype=st.sampled_from(["float64", "float32"]),
    seed=st.integers(0, 1000),
)
def test_the_bits_are_those_of_all_rows_at_once(m, cut, share, step, room, dtype, seed):
    rng = np.random.default_rng(seed)
    lo, hi = sorted(round(part * m) for part in cut)
    tree = find_subtrees(lo, hi, m)
    ids = np.flatnonzero(rng.random(hi - lo) < share) + lo
    if len(ids) < 2:
        return
    rows = rng.standard_normal((len(ids), WIDE)).astype(dtype)
    found = added(ids, [rows[k : k + step] for k in range(0, len(ids), step)], tree, dtype, room)
    assert found.keeps_rows == (len(ids) <= max(1, room))
    expected = sum_subtrees(rows, ids, lo, tree)
    if found.keeps_rows:
        assert found.rows.tobytes() == rows.tobytes()
        return
    sums = found.close()
    assert sums.dtype == dtype
    assert sums.tobytes() == expected.tobytes()
    assert found.first_bad is None
    assert len(found.rows) == 0  # no row is kept


def test_a_sum_that_waits_for_others_keeps_no_other_row_of_its_block():
    found = added(np.arange(16), [np.ones((5, WIDE))] * 2, find_subtrees(0, 16, 16))
    assert len(found.parts) == 2
    assert all(row.base is None for _, row in found.parts)


def test_replies_are_not_written_to(monkeypatch):
    monkeypatch.setattr(sums, "ROOM", 1)
    found, rows = TreeSum(np.arange(4), "float64", find_subtrees(0, 4, 4)), np.ones((4, WIDE))
    rows.flags.writeable = False
    found.put(slice(0, 4), (rows,))
    assert (found.close() == 4).all()


def test_an_array_is_lent_only_where_it_is_all_there_is_and_others_become_rows_in_client_order():
    for lend in (True, False):
        whole, found = np.ones((3, 2)), RowBuffer(3, np.float64, lend)
        found.put(slice(0, 3), (whole,))
        assert np.shares_memory(found.rows, whole) == lend
    found = RowBuffer(3, np.float64, lend=True)
    found.put(np.array([2, 0]), (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])))
    found.put(np.array([1]), (np.array([[5.0, 6.0]]), np.array([30.0])))
    assert found.rows.tolist() == [[3, 4, 20], [5, 6, 30], [1, 2, 10]]


@pytest.mark.parametrize("room", [1, 2, 4])
@pytest.mark.parametrize("wrong", [[3], [2, 5], [0]])
def test_the_first_client_with_numbers_that_are_not_finite_is_known(wrong, room):
    ids, rows = np.array([1, 2, 4, 5, 8, 9]), np.ones((6, WIDE))
    rows[wrong, 7] = np.nan
    found = added(ids, [rows[:2], rows[2:]], find_subtrees(0, 10, 10), room=room)
    assert not np.isfinite(found.close()).all()
    assert found.first_bad == wrong[0]


@pytest.mark.parametrize("room", [1, 300], ids=["one by one", "a few at once"])
@pytest.mark.parametrize("cuts", [(0, M), (0, 1, 2, 11, M)], ids=str)
def test_hosts_that_add_up_as_they_go_change_no_bit(cuts, room, monkeypatch):
    equal = LinregNoniid(clients=M, features=N, least=12, most=12)  # they come in their order
    data = equal.load(0, "float64")
    rows = Run(build("scaffold"), data=data).rounds(4)
    used = []
    monkeypatch.setattr(sums, "ROOM", room)
    monkeypatch.setattr(TreeSum, "close", lambda self, close=TreeSum.close: used.append(self) or close(self))
    assert Run(build("scaffold"), data=data, cuts=cuts).rounds(4).tobytes() == rows.tobytes()
    assert used


class Vast(Descent):
    """Clients upload numbers whose squares are not finite."""

    def round(self, fed, server):
        assert (fed.mean(self.vast, server.x) == VAST).all()
        return server

    def vast(self, f, client, x):
        return client, f.zeros(f.n) + VAST


VAST = 1e200


def test_numbers_whose_squares_overflow_are_finite_all_the_same():
    found = mpifed.run(data={"clients": 4, "features": 3}, algorithm=Vast(), rounds=1, progress=None)
    assert found.status == "finished"
