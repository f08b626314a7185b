"""Selections: how many clients, which ones, and what a replay file must hold."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, Uniform

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


def refuses(selection, m, sentence, rounds=1):
    with pytest.raises(UserError, match=sentence):
        selection.selector(0, m, rounds)


def test_all_is_everyone():
    assert All().selector(0, 7, 3).size == 7
    assert All().selector(0, 7, 3).select(2, 0) is None


@pytest.mark.parametrize("rule", [Uniform, Cover])
@given(m=st.integers(1, 200), share=shares, seed=st.integers(0, 2**63 - 1))
@example(m=100, share=0.07, seed=0)  # 0.07 · 100 is more than 7 in binary
@example(m=5, share=1e-10, seed=0)  # however small the share, somebody trains
def test_a_share_of_the_clients_rounded_up_or_a_count_is_drawn_without_repetition(rule, m, share, seed):
    size = ceil(Fraction(str(share)) * m)  # exactly, not in binary
    assert rule(share=share).selector(seed, m, 5).size == size
    for selection in (rule(share=share), rule(count=size)):
        assert all(proper(chosen, m, size) for chosen in drawn(selection, seed, m, 5))


IMPOSSIBLE = {
    "count = {} is wrong: it must be between 1 and the 10 clients": (
        [Uniform(count=n) for n in (0, -1, 11)] + [Cover(count=n) for n in (0, -1, 11)]
    ),
    "s0 = {} is wrong: with 3 of 10 clients a round it takes at least 4 rounds": [
        Cover(3 / 10, s0=n) for n in (-1, 1, 3)
    ],
    "candidates = {} is wrong: it must be between the 3 selected and the 10 clients": (
        [Biased(count=3, candidates=n) for n in (2, 11)]
    ),
}


@pytest.mark.parametrize(
    ("sentence", "rule"), [(told, rule) for told in IMPOSSIBLE for rule in IMPOSSIBLE[told]], ids=str
)
def test_what_cannot_be_with_so_many_clients_is_refused(sentence, rule):
    key, _, told = sentence.partition(" ")
    refuses(rule, 10, rf"^selection\.{key} {told.format(getattr(rule, key))}$")


@pytest.mark.parametrize(
    "selection", [Uniform(share=0.3), Cover(share=0.3), Biased(count=2, candidates=12)], ids=lambda s: s.label()
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
    [(Uniform(share=0.3), 0.3), (Cover(share=0.3), 0.3), (Biased(count=2, candidates=8), 0.4)],
    ids=str,
)
def test_draws_favour_nobody(selection, p):
    times = np.bincount(np.concatenate(drawn(selection, 1, 20, 2000)), minlength=20)
    assert even(times, 2000, p)


def test_uniform_draws_favour_no_pair():
    m, size = 8, 3
    together = np.zeros((m, m))
    for chosen in drawn(Uniform(count=size), 2, m, 2000):
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
    dealt = []

    def counted(*key):
        dealt.append(key[2:]) if len(key) == 5 else None
        return stream(*key)

    monkeypatch.setattr("mpifed.federation.participation.selection.stream", counted)
    select = Cover(count=3).selector(0, 12, 8).select
    for round in range(1, 9):
        for again in (0, 1):
            select(round, again)
    assert dealt == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]


@given(m=st.integers(1, 60), data=st.data())
def test_candidates_are_drawn_without_repetition(m, data):
    pool = data.draw(st.integers(1, m))
    count = data.draw(st.integers(1, pool))
    selector = Biased(count=count, candidates=pool).selector(0, m, 5)
    assert (selector.size, selector.batch_size) == (count, 100)
    assert all(proper(chosen, m, pool) for chosen in drawn(Biased(count=count, candidates=pool), 0, m, 5))
    assert np.array_equal(drawn(Biased(count=count), 0, m, 1)[0], np.arange(m))  # by default everyone is one


def stored(folder, **arrays):
    """The path of an NPZ file with these arrays."""
    path = folder / "sel.npz"
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_replay_gives_back_what_was_recorded(tmp_path, kind):
    sets = drawn(Uniform(share=0.4), 3, 12, 6)
    path = stored(tmp_path, mine=np.array(sets).astype(kind))
    replay = Replay(path=path, key="mine")
    assert replay.selector(99, 12, 6).size == 5
    again = drawn(replay, 99, 12, 6)
    assert all(np.array_equal(a, b) and b.dtype == np.int64 for a, b in zip(sets, again, strict=True))


def test_replay_puts_clients_in_order_leaves_padding_out_and_has_further_draws_in_an_array_with_a_two(tmp_path):
    path = stored(tmp_path, sel=np.array([[4, 0, 2], [3, -1, -1], [-1, 1, 0]]), sel2=np.array([[3], [2], [0]]))
    assert [list(chosen) for chosen in drawn(Replay(path=path), 0, 5, 3)] == [[0, 2, 4], [3], [0, 1]]
    assert [list(chosen) for chosen in drawn(Replay(path=path), 0, 5, 3, again=1)] == [[3], [2], [0]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[0, 1]], r"has 1 rows in 'sel', but rounds = 2"),
        ([[0, 1], [2, 5]], r"every row of 'sel' must name clients from 0 to 4"),
        ([[0, 1], [2, -2]], r"every row of 'sel' must name clients from 0 to 4"),
        ([[0, 1], [-1, -1]], r"every row of 'sel' must name clients from 0 to 4"),
        ([[0, 1], [2, 2]], r"a row of 'sel' names a client twice"),
        ([[], []], r"every row of 'sel' must name clients|must be a table of whole numbers"),
        ([[0.0, 1.0], [2.0, 3.0]], r"'sel' must be a table of whole numbers \(rounds, clients\), not float64 \(2, 2\)"),
        ([0, 1], r"'sel' must be a table of whole numbers \(rounds, clients\), not int64 \(2,\)"),
        ([[True, False], [False, True]], r"'sel' must be a table of whole numbers"),
        ([["0", "1"], ["2", "3"]], r"'sel' must be a table of whole numbers"),
    ],
)
def test_a_replay_that_cannot_serve_is_refused(tmp_path, table, sentence):
    refuses(Replay(path=stored(tmp_path, sel=np.array(table))), 5, rf"^selection\.(path|key) = .*{sentence}", 2)


def test_a_missing_key_is_refused_with_the_keys_there_are(tmp_path):
    path = stored(tmp_path, chosen=np.zeros((2, 1), int))
    refuses(Replay(path=path), 5, r"^selection\.key = 'sel' is not in .*; there is chosen$")


def half(path):
    np.savez(path, sel=np.zeros((100, 3), int))
    path.write_bytes(path.read_bytes()[:1000])


def damaged(path):
    np.savez_compressed(path, sel=np.arange(2000).reshape(-1, 2))
    content = bytearray(path.read_bytes())
    content[120:140] = b"\xff" * 20
    path.write_bytes(content)


def lone(path):
    with path.open("wb") as file:
        np.save(file, np.zeros((2, 1), int))


BROKEN = {
    "no such file": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("0 1\n2 3\n"),
    "half": half,
    "a folder": lambda path: path.mkdir(),
    "damaged": damaged,
    "a lone array": lone,
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_npz_file_is_refused_by_a_sentence_with_its_key_and_path(tmp_path, name):
    BROKEN[name](tmp_path / "sel.npz")
    told = r"^selection\.path = [^\n]*sel\.npz'? (cannot be read as NPZ|is no file): [^\n]*$"
    refuses(Replay(path=str(tmp_path / "sel.npz")), 5, told, 2)


def test_objects_are_refused(tmp_path):
    refuses(Replay(path=stored(tmp_path, sel=np.array([[None, 1], [2, 3]]))), 5, r"selection\.path", 2)


def test_a_replay_may_lie_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    stored(tmp_path, sel=np.array([[0, 1]]))
    assert Replay(path="~/sel.npz").selector(0, 5, 1).size == 2
