"""Datasets of torch as federated data: whose each item is, from a file and from Python, and what is refused."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data

MADE = f"{__name__}:make"


class Items:
    """``count`` samples (2, 3) from ``first`` on, labels 0, 1, 2, as a map-style dataset of torch has them."""

    def __init__(self, count, first=0, dtype="float32"):
        self.count, self.first, self.dtype = count, first, dtype

    def __len__(self):
        return self.count

    def __getitem__(self, j):
        if not 0 <= j < self.count:
            raise IndexError(f"no item {j}")
        return np.full((2, 3), self.first + j, self.dtype), (self.first + j) % 3


class Noisy(Items):
    def __getitem__(self, j):
        return np.random.default_rng().standard_normal((2, 3)), 0


def each(sizes):
    return [Items(count, sum(sizes[:i])) for i, count in enumerate(sizes)]


def broken():
    raise ValueError("no data here")


WAYS = {  # what a function returns -> the first number of each sample, by client
    "each": (lambda: each([3, 1, 4]), [[0, 1, 2], [3], [4, 5, 6, 7]]),
    "positions": (lambda: (Items(8), [[7, 0], [1], [2, 3, 4]]), [[7, 0], [1], [2, 3, 4]]),
    "named": (lambda: (Items(8), {"b": np.array([1]), "a": [7, 0], "c": (2, 3, 4)}), [[7, 0], [1], [2, 3, 4]]),
    "owners": (lambda: (Items(8), [1, 1, 0, 2, 2, 0, 1, 1]), [[2, 5], [0, 1, 6, 7], [3, 4]]),
}
WRONG = {  # what a function returns -> what is said of it
    "broken": (broken, "ValueError: no data here"),
    "empty": (lambda: each([2, 0]), "the dataset of client 1 is empty: at least 1 sample is needed"),
    "types": (
        lambda: [Items(2), Items(2, dtype="float64")],
        r"item 0 of the dataset of client 1 is float64 \[2, 3\], and the first sample float32 \[2, 3\]: .*",
    ),
    "triples": (
        lambda: [[(1.0, 2.0, 3.0)] * 4],
        r"item 0 of the dataset of client 0 cannot be read as \(sample, label\): ValueError: too many values.*",
    ),
    "endless": (
        lambda: [iter(range(4))],
        r"the dataset of client 0 is a range_iterator, which has no len\(\) and \[position\]: it must be .*",
    ),
    "beyond": (
        lambda: (Items(3), [[0], [3]]),
        r"item 3 of the list of positions of client 1 cannot be read as \(sample, label\): IndexError: no item 3",
    ),
    "between": (
        lambda: (Items(3), [[0], [0.7]]),
        r"item 0\.7 of the list of positions of client 1 cannot be read as .*: its position is no whole number",
    ),
    "noisy": (
        lambda: [Noisy(3)],
        "item 0 of the dataset of client 0 is another one when it is read again, .*: leave random transforms out",
    ),
    "three": (
        lambda: (Items(3), [[0]], [[1]]),
        r"it is a tuple of 3: it must be a list of datasets, one for each client, or a tuple \(dataset, index\)",
    ),
}


def make(way="each"):
    return (WAYS | WRONG)[way][0]()


def held_out():
    return each([1, 0, 2])


def whole(count=40):
    return Items(count)


def source(path=MADE, **options):
    return Data.build({"name": "torch-dataset", "path": path, **options}, "data")


def firsts(data, test=False):
    """The first number of each sample, by client."""
    read = data.rows_test if test else data.rows
    return [read(i, i + 1)[0][:, 0].astype(int).tolist() for i in range(data.m)]


@pytest.mark.parametrize("way", WAYS)
def test_a_function_and_a_program_say_whose_each_item_is(way):
    for made in (source(arguments={"way": way}), mpifed.datasets(make(way))):
        data = made.load(0, "float64")
        assert (data.m, data.n, data.classes) == (3, 6, 3)
        assert firsts(data) == WAYS[way][1]
        X, y = data.rows(0, 3)
        assert np.array_equal(y, X[:, 0] % 3)
        assert X.dtype == np.float64


def test_one_dataset_is_divided_by_a_partition_and_has_to_be_where_nobody_says_whose_its_items_are():
    path = MADE.replace("make", "whole")
    data = source(path, clients=4, partition="contiguous").load(0, "float32")
    assert firsts(data) == [list(range(10 * i, 10 * i + 10)) for i in range(4)]
    assert data.notes == ("samples of shape [2, 3] are flat rows: problem.shape is for networks",)
    assert mpifed.datasets((whole(), 5)).load(0, "float32").m == 5
    assert source(path, arguments={"count": 300}).load(0, "float32").m == 128
    with pytest.raises(UserError, match=r"^these items belong to no client: train is a list of datasets, one for each"):
        mpifed.datasets(whole())


def test_test_samples_come_from_datasets_too_or_are_a_share():
    given = source(path_test=MADE.replace("make", "held_out")), mpifed.datasets(make(), test=held_out())
    share = source(test=0.5), mpifed.datasets(make(), test=0.5)
    assert [firsts(data.load(0, "float64"), True) for data in given] == [[[0], [], [1, 2]]] * 2
    assert [data.load(0, "float64").sizes_test.tolist() for data in share] == [[2, 0, 2]] * 2


@pytest.mark.parametrize("way", WRONG)
def test_datasets_that_cannot_be_federated_data_are_refused(way):
    with pytest.raises(UserError, match=rf'^data\.path = "{MADE}" is wrong: {WRONG[way][1]}$'):
        source(arguments={"way": way}).load(0, "float64")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"clients": 5}, r"data\.clients = 5 contradicts data\.path, which has the samples of 3 clients: leave it out"),
        ({"partition": "iid"}, r'data\.partition = "iid" contradicts data\.path, which has the samples of 3 clients a'),
        ({"test": 0.2, "path_test": MADE}, r"data\.test = 0\.2 contradicts data\.path_test, which has the test sampl"),
        ({"path_test": "no.py:own"}, r'data\.path_test = "no\.py:own" is wrong: there is no file no\.py'),
        ({"path": f"{__name__}:absent"}, r'data\.path = ".*:absent" is wrong: .* has no function absent; '),
    ],
)
def test_options_that_contradict_the_datasets_are_refused(options, sentence):
    with pytest.raises(UserError, match=rf"^{sentence}"):
        source(**options).load(0, "float64")
