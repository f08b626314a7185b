"""Partitions: every sample has at most one owner, no client is empty, and what a rule promises holds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.data.partition import Classes, Contiguous, Dirichlet, Iid, Partition, Shards, Sizes

RULES = [
    *(Iid(), Contiguous(), Sizes(), Sizes(least=0.9), Shards(), Shards(per_client=1)),
    *(Classes(), Classes(per_client=1), Dirichlet(), Dirichlet(alpha=100.0)),
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
def test_contiguous_parts_are_equal_runs_the_larger_ones_first_and_iid_parts_differ_by_one_at_most(m, d):
    order, sizes = split(Contiguous(), labels(d, 3), m)
    assert np.array_equal(order, np.arange(d))
    assert list(sizes) == [len(part) for part in np.array_split(order, m)] == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
    assert np.ptp(split(Iid(), np.zeros(d), m)[1]) <= 1


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
MANY = np.arange(60) % 2.0


@pytest.mark.parametrize(
    ("least", "alpha", "sentence"),
    [
        (13, 0.5, r"least_samples = 13 for data\.clients = 5 needs 65 samples, .* 60: .* to 12, with a large"),
        (10, 0.01, r"alpha = 0\.01 left a client .*: raise alpha or lower data\.clients = 5$"),
    ],
)
def test_what_is_advised_for_shares_that_leave_too_few_samples_gives_a_partition(least, alpha, sentence):
    def deal(**options):
        return Dirichlet(**options).split(MANY, 5, np.random.default_rng(0))

    with pytest.raises(UserError, match=sentence):
        deal(alpha=alpha, least_samples=least)
    assert deal(alpha=1e6, least_samples=min(least, 12))[1].min() >= min(least, 12)


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
        ({"name": "classes", "per_client": 1}, 0 * PAIRS, 12, r' = "classes" left a client empty .*data\.clients = 12'),
        ({"name": "dirichlet", "alpha": 1e-3}, 0 * PAIRS, 5, r"\.alpha = 0\.001 left a client .* data\.clients = 5"),
        ({"name": "dirichlet", "least_samples": 3}, PAIRS, 5, r"least_samples = 3 for .* 15 samples, and there are 12"),
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
    def shares(alpha):
        parts = labels_of(Dirichlet(alpha=alpha), np.repeat(np.arange(10), 200), 10)
        return np.array([np.bincount(part, minlength=10).max() / len(part) for part in parts])

    assert shares(0.1).mean() > 0.4
    assert np.allclose(shares(1e6), 0.1, atol=0.02)
    y = np.arange(1000) % 20  # 50 of each class for 1000 clients: each class reaches every 20th client
    assert set(split(Dirichlet(alpha=1e8), y, 1000)[1]) == {1}
