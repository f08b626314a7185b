"""Selections: how many clients, which ones, and what a replay file must hold."""

from fractions import Fraction
from itertools import pairwise, product
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.features.selection_laws.feature import Cyclic, Greedy
from mpifed.federation.participation import selection as module
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, UniformSelection

shares = st.integers(1, 10000).map(lambda k: k / 10000)


def drawn(selection, seed, m, rounds, again=0):
    """The clients of rounds 1, 2 …"""
    selector = selection.selector(seed, m, rounds)
    sets = [selector.select(round, again) for round in range(1, rounds + 1)]
    return [np.arange(m) if chosen is None else chosen for chosen in sets]


def proper(chosen, m, size):
    """Whether these are ``size`` different clients, rising."""
    return len(chosen) == size and (np.diff(chosen) > 0).all() and chosen[0] >= 0 and chosen[-1] < m


def even(times, rounds, p):
    """Whether what happens with probability p in a round did so about p·rounds times: within 5 σ."""
    return abs(times - p * rounds).max() <= 5 * np.sqrt(rounds * p * (1 - p))


def refuses(selection, m, sentence):
    with pytest.raises(UserError, match=sentence):
        selection.selector(0, m, 1)


@pytest.mark.parametrize("rule", [UniformSelection, Cover])
@given(m=st.integers(1, 200), share=shares, seed=st.integers(0, 2**63 - 1))
@example(m=100, share=0.07, seed=0)  # 0.07 · 100 is more than 7 in binary
@example(m=5, share=1e-10, seed=0)  # however small the share, somebody trains
def test_a_share_of_the_clients_rounded_up_or_a_count_is_drawn_without_repetition(rule, m, share, seed):
    assert (All().selector(seed, m, 5).size, All().selector(seed, m, 5).select(2, 0)) == (m, None)
    size = ceil(Fraction(str(share)) * m)  # exactly, not in binary
    assert rule(share=share).selector(seed, m, 5).size == size
    for selection in (rule(share=share), rule(count=size)):
        assert all(proper(chosen, m, size) for chosen in drawn(selection, seed, m, 5))


COUNT = "it must be between 1 and the 10 clients"
IMPOSSIBLE = [(kind, "count", n, COUNT) for kind in (UniformSelection, Cover) for n in (0, -1, 11)]
IMPOSSIBLE += [(Cover, "s0", n, "with 3 of 10 clients a round it takes at least 4 rounds") for n in (-1, 1, 3)]
IMPOSSIBLE += [(Biased, "candidates", n, "it must be between the 3 selected and the 10 clients") for n in (2, 11)]
IMPOSSIBLE += [(Cyclic, "overlap", 3, "it must be less than the 3 selected clients")]
IMPOSSIBLE += [(Greedy, "uniform", 3, "it must be less than the 3 selected clients")]


@pytest.mark.parametrize(("kind", "key", "value", "right"), IMPOSSIBLE, ids=str)
def test_what_cannot_be_with_so_many_clients_is_refused(kind, key, value, right):
    refuses(kind(**{"count": 3} | {key: value}), 10, rf"^selection\.{key} = {value} is wrong: {right}$")


@pytest.mark.parametrize(
    "selection",
    [UniformSelection(share=0.3), Cover(share=0.3), Biased(count=2, candidates=12)],
    ids=lambda s: s.label(),
)
def test_a_draw_depends_on_seed_and_round_alone(selection):
    forwards = drawn(selection, 5, 40, 30)
    selector = selection.selector(5, 40, 1000)
    for round in reversed(range(1, 31)):
        assert np.array_equal(selector.select(round, 0), forwards[round - 1])
    assert len({tuple(chosen) for chosen in forwards}) == 30  # another round, another draw
    assert not np.array_equal(drawn(selection, 6, 40, 1)[0], forwards[0])
    assert not np.array_equal(drawn(selection, 5, 40, 1, again=1)[0], forwards[0])


@pytest.mark.parametrize(
    ("selection", "p"),
    [(UniformSelection(share=0.3), 0.3), (Cover(share=0.3), 0.3), (Biased(count=2, candidates=8), 0.4)],
    ids=str,
)
def test_draws_favour_nobody(selection, p):
    times = np.bincount(np.concatenate(drawn(selection, 1, 20, 2000)), minlength=20)
    assert even(times, 2000, p)


def test_uniform_draws_favour_no_pair():
    m, size = 8, 3
    together = np.zeros((m, m))
    for chosen in drawn(UniformSelection(count=size), 2, m, 2000):
        together[np.ix_(chosen, chosen)] += 1
    assert even(together[~np.eye(m, dtype=bool)], 2000, size * (size - 1) / (m * (m - 1)))


@given(m=st.integers(1, 60), share=shares, longer=st.integers(0, 5), seed=st.integers(0, 99), again=st.integers(0, 1))
def test_cover_deals_everyone_in_every_group_of_s0_rounds_and_fills_sets_from_the_others(m, share, longer, seed, again):
    selection = Cover(share=share)
    size = selection.size(m)
    s0 = ceil(m / size) + longer
    sets = drawn(Cover(share=share, s0=s0) if longer else selection, seed, m, 3 * s0, again)
    for group in range(3):
        assert set(np.concatenate(sets[group * s0 : (group + 1) * s0])) == set(range(m))
    for round, found in enumerate(sets, 1):
        group, turn = divmod(round - 1, s0)
        deal = stream(seed, "selection", group, again, 1).permutation(m)
        own = deal[turn * m // s0 : (turn + 1) * m // s0]
        rest = stream(seed, "selection", round, again).choice(np.setdiff1d(deal, own), size - len(own), replace=False)
        assert found.tolist() == sorted([*own, *rest])


def test_cover_deals_once_in_a_group_of_rounds_and_for_each_selection_of_a_round(monkeypatch):
    keys = []
    monkeypatch.setattr(module, "stream", lambda *key: keys.append(key[2:]) or stream(*key))
    select = Cover(count=3).selector(0, 12, 8).select
    for place in product(range(1, 9), (0, 1)):
        select(*place)
    assert [key for key in keys if len(key) == 3] == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]


@given(m=st.integers(1, 60), data=st.data())
def test_candidates_are_drawn_without_repetition(m, data):
    pool = data.draw(st.integers(1, m))
    rule = Biased(count=data.draw(st.integers(1, pool)), candidates=pool)
    assert (rule.selector(0, m, 5).size, rule.selector(0, m, 5).batch_size) == (rule.count, 100)
    assert all(proper(chosen, m, pool) for chosen in drawn(rule, 0, m, 5))
    assert np.array_equal(drawn(Biased(count=rule.count), 0, m, 1)[0], np.arange(m))  # by default everyone is one


def stored(folder, **arrays):
    """The path of an NPZ file with these arrays."""
    path = folder / "sel.npz"
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_replay_gives_back_what_was_recorded_also_from_home(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    sets = drawn(UniformSelection(share=0.4), 3, 12, 6)
    stored(tmp_path, mine=np.array(sets).astype(kind))
    replay = Replay(path="~/sel.npz", key="mine")
    assert replay.selector(99, 12, 6).size == 5
    again = drawn(replay, 99, 12, 6)
    assert all(np.array_equal(a, b) and b.dtype == np.int64 for a, b in zip(sets, again, strict=True))


def test_replay_puts_clients_in_order_leaves_padding_out_and_has_further_draws_in_an_array_with_a_two(tmp_path):
    path = stored(tmp_path, sel=np.array([[4, 0, 2], [3, -1, -1], [-1, 1, 0]]), sel2=np.array([[3], [2], [0]]))
    assert Replay(path=path).selector(0, 5, 1).size == 1  # of the smallest row, also of one beyond the run
    assert [list(chosen) for chosen in drawn(Replay(path=path), 0, 5, 3)] == [[0, 2, 4], [3], [0, 1]]
    assert [list(chosen) for chosen in drawn(Replay(path=path), 0, 5, 3, again=1)] == [[3], [2], [0]]


@given(m=st.integers(1, 60), data=st.data(), again=st.integers(0, 1))
def test_turns_come_round_evenly(m, data, again):
    size = data.draw(st.integers(1, m))
    overlap = data.draw(st.integers(0, size - 1))
    rule = Cyclic(count=size, overlap=overlap, shuffled=data.draw(st.booleans()))
    sets = drawn(rule, 3, m, m, again)  # m rounds are whole turns
    assert all(len(chosen) == size and (np.diff(chosen) > 0).all() for chosen in sets)
    times = np.bincount(np.concatenate(sets), minlength=m)
    assert (times > 0).all() if overlap else (times == size).all()
    if size < m and 2 * size - overlap <= m:
        assert all(len(np.intersect1d(a, b)) == overlap for a, b in pairwise(sets))


def test_turns_follow_the_order_of_the_data():
    found = drawn(Cyclic(count=3), 0, 7, 4)
    assert [chosen.tolist() for chosen in found] == [[0, 1, 2], [3, 4, 5], [0, 1, 6], [2, 3, 4]]
    assert drawn(Cyclic(count=3), 0, 7, 1, again=1)[0].tolist() == [3, 4, 5]
    shuffled = drawn(Cyclic(count=1, shuffled=True), 1, 30, 30)
    assert np.concatenate(shuffled).tolist() not in ([*range(30)], sorted(range(30), reverse=True))
