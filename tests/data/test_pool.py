"""Pools dealt to clients: training and test samples of a client are its own, whatever the rank."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.data.partition import Partition
from mpifed.data.pool import Pool, PoolSamples, make_pool
from mpifed.data.sources.arrays import Arrays
from mpifed.data.split import SplitDataset
from tests.helpers import data_files as files
from tests.helpers.data_files import X, load, write, y


class Third(Partition):
    """Each client has one row for every three of its share."""

    def deal(self, y, m, rng):
        return rng.permutation(len(y)), np.full(m, len(y) // m // 3)


@pytest.mark.parametrize("source", ["arrays", "file"])
def test_rows_that_a_partition_leaves_out_are_counted(source, tmp_path):
    samples, labels = np.ones((3600, 2)), np.arange(3600) % 2
    rule = f"{__file__}:Third"
    if source == "arrays":
        pool = mpifed.arrays(samples, labels, 4, partition=rule).load(0, "float64")
    else:
        write(tmp_path / "pool.npz", {"X": samples, "y": np.array(["no", "yes"])[labels]})
        pool = load(tmp_path / "pool.npz", clients=4, partition=rule)
    assert pool.notes[0] == "2,400 of 3,600 rows belong to no client: the partition leaves them out"
    assert len(pool.notes) == 1 + (source == "file")
    assert mpifed.arrays(samples, labels, 4).load(0, "float64").notes == ()


class Made(Dataset):
    """Client i has samples numbered on from those of the clients before it."""

    def __init__(self, sizes, seed=0):
        self.m, self.n, self.sizes, self.seed = len(sizes), 1, np.array(sizes), seed

    def rows(self, lo, hi):
        numbers = np.arange(self.sizes[:lo].sum(), self.sizes[:hi].sum())
        return numbers[:, None], numbers


def split(form, sizes, order, share, seed):
    if form == "made":
        return SplitDataset(Made(sizes, seed), {"test": share})
    numbers = np.arange(sum(sizes))
    matrix = sp.csr_array(numbers[:, None] + 1.0) if form == "csr" else numbers[:, None] + 1.0
    samples = PoolSamples(matrix, numbers, order, np.array(sizes))
    return make_pool(Arrays(test=share), samples, {}, seed, "float64", "x")


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    share=st.sampled_from([0.1, 0.2, 0.5, 0.99]),
    seed=st.integers(0, 9),
    form=st.sampled_from(["pool", "csr", "as it lies", "made"]),
)
def test_the_parts_of_a_client_are_disjoint_and_complete(sizes, share, seed, form):
    shuffled = np.random.default_rng(seed).permutation(sum(sizes))
    order = None if form == "as it lies" else shuffled
    if max(sizes) == 1 or share * max(sizes) < 0.5:
        with pytest.raises(UserError, match=f"^data.test = {share} leaves no client a test sample"):
            split(form, sizes, order, share, seed)
        return
    dataset = split(form, sizes, order, share, seed)
    assert np.array_equal(dataset.sizes + dataset.sizes_test, sizes)
    assert dataset.sizes.min() >= 1
    wanted = np.array(sizes) * share
    assert np.all((np.abs(dataset.sizes_test - wanted) <= 0.5 + 1e-9) | (dataset.sizes_test == np.array(sizes) - 1))
    files.same_rows_however_asked(dataset)
    files.same_tests_however_asked(dataset)
    whose = np.arange(sum(sizes)) if form in ("as it lies", "made") else order
    for i, own in enumerate(np.split(whose, np.cumsum(sizes)[:-1])):
        assert sorted([*dataset.rows(i, i + 1)[1], *dataset.rows_test(i, i + 1)[1]]) == sorted(own)


def test_half_a_sample_is_rounded_up():
    assert SplitDataset(Made([3, 5, 7, 9]), {"test": 0.5}).sizes_test.tolist() == [2, 3, 4, 5]


def test_the_split_is_drawn_from_the_seed_and_not_the_first_or_last_rows():
    first, again, other = (split("pool", [50, 50], None, 0.2, seed).rows_test(0, 2)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[:10], first[10:] - 50)


def test_a_bad_number_among_the_tests_is_named_by_its_place_in_the_file_and_data_of_a_users_own_have_no_name(tmp_path):
    bad = X.copy()
    bad[1, 2] = np.inf
    dataset = load(write(tmp_path / "fed.npz", {"X": bad[:2], "y": y[:2], "sizes": [2]}), test=0.5)
    kept = dataset.rows if dataset.train.order[0] == 1 else dataset.rows_test
    with pytest.raises(UserError, match=r"row 1 of X of .*fed\.npz is not finite"):
        kept(0, 1)
    with pytest.raises(UserError, match=r"^row 3 of X of the data set is not finite"):
        Pool(np.diag([1, 1, 1, np.nan]), np.ones(4), None, np.array([2, 2])).rows(0, 2)
