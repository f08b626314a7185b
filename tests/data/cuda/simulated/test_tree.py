"""Sums of rows of clients along the tree over client numbers."""

from functools import partial

import numpy as np
import pytest

from mpifed.data.cuda.device import Device
from mpifed.data.cuda.tree import tree_sum
from mpifed.federation import sums

same = partial(np.testing.assert_array_equal, strict=True)


def device(dtype):
    return Device(np.dtype(dtype), lambda shape: np.full(shape, np.nan, dtype))


def rows(m, n, dtype="float64"):
    """Numbers of which every order of additions has a sum of its own."""
    rng = np.random.default_rng(m)
    return (rng.standard_normal((m, n)) * 10.0 ** rng.integers(-3, 4, (m, 1))).astype(dtype)


def by_numpy(part, ids, m):
    return sums.subtotals(part, ids, 0, [(sums.depth(m), 0)])[0]


@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 9, 31, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_have_the_bits_of_numpy(m, dtype):
    R = rows(m, 3, dtype)
    same(tree_sum(device(dtype), R), by_numpy(R, None, m))


@pytest.mark.parametrize("n", [1, 4, 5, 11])
def test_have_as_many_columns_as_rows_have(n):
    R = rows(21, n)
    same(tree_sum(device("float64"), R), by_numpy(R, None, 21))


@pytest.mark.parametrize("ids", [[0], [40], [3, 4, 5], [0, 7, 8, 15, 16, 39, 40], range(0, 41, 3), range(41)])
def test_skip_absent_clients(ids):
    ids = np.array(ids, np.int64)
    R = rows(len(ids), 3)
    same(tree_sum(device("float64"), R, ids, 41), by_numpy(R, ids, 41))


def test_of_no_client_are_0_and_of_negative_zeros_too():
    none = tree_sum(device("float64"), np.zeros((0, 2)), np.zeros(0, np.int64), 20)
    zeros = tree_sum(device("float64"), np.full((20, 2), -0.0))
    for found in (none, zeros):
        same(found, np.zeros(2))
        assert not np.signbit(found).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_are_divided_to_a_mean(dtype):
    R = rows(13, 3, dtype)
    same(tree_sum(device(dtype), R, count=13), sums.divided(by_numpy(R, None, 13), 13))
