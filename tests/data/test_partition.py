"""Partitions: every sample has at most one owner, no client is empty, and what a rule promises holds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.data.partition import (
    Classes,
    Contiguous,
    Dirichlet,
    DirichletClients,
    Iid,
    Partition,
    Shards,
    Sizes,
    apportion,
    draw_classes,
    move_samples,
)

RULES = [
    *(Iid(), Contiguous(), Sizes(), Sizes(least=0.9), Shards(), Shards(per_client=1)),
    *(Classes(), Classes(per_client=1), Dirichlet(), Dirichlet(alpha=100.0), Dirichlet(alpha=1e-3)),
    *(DirichletClients(), DirichletClients(alpha=1e-3), DirichletClients(alpha=1e9)),
]


def split(rule, y, m, seed=0):
    return rule.split(np.asarray(y), m, stream(seed, "partition"))


def labels_of(rule, y, m, seed=0):
    """The labels of each client."""
    order, sizes = split(rule, y, m, seed)
    return [y[part] for part in np.split(order, np.cumsum(sizes)[:-1])]


def labels(d, classes, seed=0):
    return np.random.default_rng(seed).integers(classes, size=d)


@given(st.sampled_from(RULES), st.integers(1, 12), st.integers(1, 150), st.integers(1, 4), st.integers(0, 99))
def test_every_sample_has_exactly_one_owner_and_no_client_is_empty(rule, m, d, classes, seed):
    try:
        order, sizes = split(rule, labels(d, classes, seed), m, seed)
    except UserError:
        return  # what cannot be dealt out is refused, below
    assert order.dtype == sizes.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(d))
    assert (len(sizes), sizes.sum()) == (m, d)
    assert sizes.min() >= 1


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_same_seed_same_partition_another_seed_another_and_one_client_gets_everything(rule):
    y = labels(200, 4)
    first, again, other = split(rule, y, 5), split(rule, y, 5), split(rule, y, 5, seed=1)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert np.array_equal(first[0], other[0]) == isinstance(rule, Contiguous)  # the only one without random numbers
    with pytest.raises(UserError, match=r"data\.clients = 11 is more than the 10 samples"):
        split(rule, labels(10, 2), 11)
    if rule != Classes(per_client=1):
        order, sizes = split(rule, np.tile([0, 1], 10), 1)
        assert (len(order), sizes.tolist()) == (20, [20])


@given(m=st.integers(1, 30), d=st.integers(30, 200))
def test_contiguous_parts_are_equal_runs_the_larger_ones_first_and_equal_parts_differ_by_one_at_most(m, d):
    order, sizes = split(Contiguous(), labels(d, 3), m)
    assert np.array_equal(order, np.arange(d))
    assert list(sizes) == [len(part) for part in np.array_split(order, m)] == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
    for rule in (Iid(), DirichletClients()):
        assert np.ptp(split(rule, labels(d, 3), m)[1]) <= 1


def test_random_sizes_stay_above_the_least_share_of_the_mean_and_follow_the_law_of_redrawn_cut_points():
    for seed in range(20):
        assert split(Sizes(least=0.5), np.zeros(8992), 128, seed)[1].min() > 0.5 * 8992 / 128
    assert split(Sizes(least=0.5), np.zeros(100_000), 10_000)[1].min() == 6  # many clients need no luck
    d, m, least = 12, 3, 0.5
    counts = {}
    rng = stream(0, "partition")
    for _ in range(4000):
        sizes = tuple(Sizes(least=least).draw_sizes(d, m, rng))
        counts[sizes] = counts.get(sizes, 0) + 1
    allowed = {(a, b, d - a - b) for a in range(1, d) for b in range(1, d - a) if min(a, b, d - a - b) > least * d / m}
    assert set(counts) == allowed
    assert max(abs(n / 4000 - 1 / len(allowed)) for n in counts.values()) < 0.015


@pytest.mark.parametrize(("sizes", "wanted"), [([3, 1, 2], [3, 1, 2]), (3, [3, 3, 3])])
def test_given_sizes_take_a_subset_of_the_pool(sizes, wanted):
    order, found = split(Sizes(sizes=sizes), np.zeros(10), 3)
    assert (list(found), len(set(order))) == (wanted, sum(wanted))


PAIRS = np.arange(12) // 2
REAL = np.linspace(0, 1, 50)


@pytest.mark.parametrize(
    ("table", "y", "m", "sentence"),
    [
        ({"sizes": [3, 3]}, PAIRS, 3, r"\.sizes has 2 entries, but data\.clients = 3"),
        ({"sizes": [8, 5]}, PAIRS, 2, r"\.sizes adds up to 13, but there are only 12"),
        ({"sizes": [3, 0]}, PAIRS, 2, r": sizes = \[3, 0\] is wrong: it must be .* at least 1"),
        ({"sizes": 7}, PAIRS, 2, r"\.sizes adds up to 14, but there are only 12"),
        ({"sizes": []}, PAIRS, 2, r": sizes = \[\] is wrong"),
        ({"least": 0.9}, PAIRS, 9, r"\.least = 0\.9 is too large for 12 samples and data\.clients = 9"),
        ({"name": "shards", "per_client": 3}, PAIRS, 5, r"\.per_client = 3 and data\.clients = 5 need 15 shards, but"),
        ({"name": "shards", "per_client": 1, "pure": True}, PAIRS, 5, r"\.pure = true needs .* each of the 6 classes"),
        ({"name": "classes", "per_client": 7}, PAIRS, 5, r"\.per_client = 7 is too large: there are 6 classes"),
        ({"name": "dirichlet", "least_samples": 3}, PAIRS, 5, r" 15 samples, and there are 12: lower .* to 2$"),
        ({"name": "dirichlet", "least_samples": 13}, PAIRS, 1, r" 13 samples, and there are 12: lower .* to 12$"),
        ({"name": "dirichlet-clients"}, REAL, 5, ' = "dirichlet-clients" needs classes'),
        ({"name": "classes"}, REAL, 5, ' = "classes" needs classes'),
        ({"name": "dirichlet"}, REAL, 5, ' = "dirichlet" needs classes'),
        ({"name": "shards", "pure": True}, REAL, 5, ' = "shards" needs classes'),
    ],
)
def test_impossible_partitions_say_which_key_is_wrong(table, y, m, sentence):
    with pytest.raises(UserError, match=rf"data\.partition.*{sentence}"):
        split(Partition.build({"name": "sizes", **table}, "data.partition"), y, m, seed=1)


def test_shards_give_a_client_few_labels_also_real_ones():
    parts = labels_of(Shards(), np.repeat(np.arange(10), 60), 50)
    assert {len(part) for part in parts} == {12}
    assert max(len(set(part)) for part in parts) <= 2
    y = np.sort(labels(997, 7))
    parts = labels_of(Shards(per_client=1, pure=True), y, 41)  # which never cross a class border
    assert {len(set(part)) for part in parts} == {1}
    assert np.array_equal(np.sort(np.concatenate(parts)), y)
    parts = labels_of(Shards(per_client=1), np.random.default_rng(0).normal(size=100), 4)
    spans = sorted((part.min(), part.max()) for part in parts)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_classes_gives_each_client_its_number_of_classes_and_loses_none():
    assert max(len(set(part)) for part in labels_of(Classes(per_client=2), labels(5000, 10), 40)) == 2
    order, sizes = split(Classes(per_client=1), np.repeat(np.arange(10), 20), 3)
    assert len(order) == sizes.sum() == 200  # also of classes that nobody drew
    for rule in (Classes(per_client=1), Dirichlet(), Shards(pure=True)):
        assert len(split(rule, np.tile([-1.0, 1.0], 50), 4, seed=1)[0]) == 100  # labels may be any whole numbers


def test_small_alpha_separates_classes_and_large_alpha_mixes_them_and_leaves_nobody_empty():
    def shares(rule):
        parts = labels_of(rule, np.repeat(np.arange(10), 200), 10)
        return np.array([np.bincount(part, minlength=10).max() / len(part) for part in parts])

    assert shares(Dirichlet(alpha=0.1)).mean() > 0.4
    assert np.allclose(shares(Dirichlet(alpha=1e6)), 0.1, atol=0.02)
    assert np.mean(shares(DirichletClients(alpha=1e-3)) == 1) >= 0.4  # the last ones draw what is left
    assert shares(DirichletClients(alpha=1e6)).mean() < 0.15  # of 200 samples drawn one by one
    y = np.arange(1000) % 20  # 50 of each class for 1000 clients: each class reaches every 20th client
    assert set(split(Dirichlet(alpha=1e8), y, 1000)[1]) == {1}


# Plain loops over clients and samples, written from the papers, beside the rules above.


def deal_in_turn(counts, y, rng):
    """The rows of each client, a random ``counts[k][i]`` of class k for client i."""
    shuffled = rng.permutation(len(y)).tolist()
    parts = [[] for _ in counts[0]]
    for k, row in enumerate(counts):
        rows = [r for r in shuffled if y[r] == k]
        for i, count in enumerate(row):
            parts[i] += [rows.pop(0) for _ in range(count)]
    return [sorted(part) for part in parts]


def loop_dirichlet(y, m, alpha, rng):
    counts = []
    owed = [0.0] * m
    for k in range(max(y) + 1):
        shares = rng.dirichlet([alpha] * m) * list(y).count(k)
        row = [int(share) for share in shares]
        owed = [o + (share - count) for o, share, count in zip(owed, shares, row, strict=True)]
        for i in sorted(range(m), key=lambda i: -owed[i])[: list(y).count(k) - sum(row)]:
            row[i] += 1
            owed[i] -= 1
        counts.append(row)
    return deal_in_turn(counts, y, rng)


def loop_dirichlet_clients(y, m, alpha, rng):
    d = len(y)
    left = [list(y).count(k) for k in range(max(y) + 1)]
    prior = np.array(left) / d
    mixes = [rng.dirichlet(alpha * prior) for _ in range(m)]
    counts = [[0] * m for _ in left]
    for i in rng.permutation(m):
        missing = (i + 1) * d // m - i * d // m
        while missing:
            mix = [q if one else 0.0 for q, one in zip(mixes[i], left, strict=True)]
            mix = mix if any(mix) else left
            for k, drawn in enumerate(rng.multinomial(missing, np.array(mix) / np.sum(mix))):
                taken = min(drawn, left[k])
                counts[k][i] += taken
                left[k] -= taken
                missing -= taken
    assert not any(left)
    return deal_in_turn(counts, y, rng)


def loop_shards(y, m, per_client, rng):
    rows = sorted(rng.permutation(len(y)).tolist(), key=lambda r: y[r])
    count = m * per_client
    shards = [rows[k * len(y) // count : (k + 1) * len(y) // count] for k in range(count)]
    dealt = [shards[k] for k in rng.permutation(count)]
    return [[row for shard in dealt[i * per_client : (i + 1) * per_client] for row in shard] for i in range(m)]


LOOPS = [
    (lambda y, m, rng: loop_dirichlet(y, m, 0.8, rng), Dirichlet(alpha=0.8)),
    (lambda y, m, rng: loop_dirichlet_clients(y, m, 0.3, rng), DirichletClients(alpha=0.3)),
    (lambda y, m, rng: loop_shards(y, m, 3, rng), Shards(per_client=3)),
]


@pytest.mark.parametrize(("loop", "rule"), LOOPS, ids=lambda one: getattr(one, "name", ""))
def test_a_partition_is_that_of_a_plain_loop_with_the_same_random_numbers(loop, rule):
    compared = 0
    for seed in range(20):
        y = labels(90 + seed, 4, seed)
        theirs = loop(y.tolist(), 7, stream(seed, "partition"))
        if min(map(len, theirs)) == 0:
            continue  # then samples are moved, below
        order, sizes = split(rule, y, 7, seed)
        assert [part.tolist() for part in np.split(order, np.cumsum(sizes)[:-1])] == theirs
        compared += 1
    assert compared > 10


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5), st.integers(0, 10**6))
def test_samples_are_moved_one_by_one_from_the_largest_client_that_has_the_class(C, m, least, seed):
    rng = np.random.default_rng(seed)
    wanted = rng.integers(0, 3, (C, m)) + rng.random((C, m)) / 2
    counts = rng.multinomial(m * least + rng.integers(9), rng.dirichlet(np.full(C * m, 0.1))).reshape(C, m)
    moved = counts.copy()
    for i in range(m):
        while moved[:, i].sum() < least:
            sizes = moved.sum(axis=0)
            donors = {k: [j for j in range(m) if moved[k, j] and sizes[j] > least] for k in range(C)}
            k = max((k for k in range(C) if donors[k]), key=lambda k, i=i: wanted[k, i])
            moved[k, max(donors[k], key=lambda j, sizes=sizes: sizes[j])] -= 1
            moved[k, i] += 1
    found = counts.copy()
    move_samples(found, wanted, least, rng)
    assert np.array_equal(found, moved)
    assert np.array_equal(found.sum(axis=1), counts.sum(axis=1))
    assert found.sum(axis=0).min() >= least
    assert (found.sum(axis=0) <= np.maximum(counts.sum(axis=0), least)).all()


@given(st.integers(1, 12), st.integers(0, 99), st.sampled_from([1e-3, 0.1, 1.0]))
def test_least_samples_are_reached_with_every_alpha(m, seed, alpha):
    y = labels(60, 3, seed)
    assert split(Dirichlet(alpha=alpha, least_samples=60 // m), y, m, seed)[1].min() == 60 // m


def test_samples_drawn_together_have_the_law_of_samples_drawn_one_by_one():
    mix, left = np.array([0.7, 0.2, 0.1]), np.array([3, 2, 9])
    rng = np.random.default_rng(0)
    means = np.zeros((2, 3))
    for _ in range(1500):
        means[0] += draw_classes(mix, 6, left, rng) / 1500
        drawn = np.zeros(3, dtype=int)
        for _ in range(6):
            shares = np.where(drawn < left, mix, 0)
            drawn[rng.choice(3, p=shares / shares.sum())] += 1
        means[1] += drawn / 1500
    assert abs(means[0] - means[1]).max() < 0.1


def test_what_rounding_takes_from_a_client_in_one_class_it_gets_in_the_next():
    counts = apportion(np.full((10, 20), 0.25), np.full(10, 5))  # 2.5 samples of each client
    assert (counts.sum(axis=1) == 5).all()
    assert set(counts.sum(axis=0).tolist()) == {2, 3}
