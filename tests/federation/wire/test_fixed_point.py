"""Fixed point: the nearest multiple, sums that are exact in any order, and the largest entry that fits."""

import numpy as np
import pytest

from mpifed.federation.wire.fixed_point import FixedPoint

formats = pytest.mark.parametrize(
    "fixed", [FixedPoint(64, 32), FixedPoint(64, 50), FixedPoint(32, 12), FixedPoint(17, 3)]
)


@formats
def test_a_number_comes_back_as_the_nearest_multiple(fixed):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 5)) * fixed.limit(2)
    back = fixed.decode(fixed.encode(X))
    assert np.abs(back - X).max() <= 2.0 ** -(fixed.fraction + 1)
    assert np.array_equal(fixed.decode(fixed.encode(back)), back)
    assert (fixed.encode(X) < 2**fixed.bits - 1).all() or fixed.bits == 64


@formats
def test_the_sum_is_exact_in_any_order_up_to_the_limit(fixed):
    """Whole multiples, added as Python's integers, which have no largest one."""
    edge, rng = fixed.limit(7), np.random.default_rng(1)
    X = np.concatenate([np.full((7, 1), edge), np.full((7, 1), -edge), rng.uniform(-edge, edge, (7, 9))], 1)
    exact = [sum(int(q) for q in column) for column in np.rint(np.ldexp(X, fixed.fraction)).T]
    for order in (np.arange(7), np.arange(7)[::-1], rng.permutation(7)):
        total = fixed.encode(X)[order].sum(axis=0, dtype=np.uint64)
        assert fixed.decode(total).tolist() == [float(q) * 2.0**-fixed.fraction for q in exact]


@formats
@pytest.mark.parametrize("value", [1e-9, 0.7, 3.0, 4e4])
def test_room_is_the_most_bits_with_which_a_value_fits(fixed, value):
    most = fixed.room(value, 10)
    assert value <= fixed._replace(fraction=most).limit(10)
    assert value > fixed._replace(fraction=most + 1).limit(10)
