"""Conditions compare their two sides, and say so where one of them is not known."""

import math

import numpy as np
import pytest

from mpifed.theory.statements import Certificate, Condition, is_convex


@pytest.mark.parametrize(
    ("left", "relation", "right", "holds"),
    [
        (2.0, ">=", 2.0, True),
        (2.0, ">", 2.0, False),
        (1.9, ">=", 2.0, False),
        (0.1 + 0.2, "<=", 0.3, True),  # rounding
        (1.0, "<", math.inf, True),
        (1.0, "=", 1.0, True),
        (math.nan, ">", 1.0, None),
        (1.0, ">", math.nan, None),
    ],
)
def test_a_condition_compares_its_sides(left, relation, right, holds):
    assert Condition.of("a", left, relation, right, "Theorem 1").holds is holds


def test_a_certificate_holds_if_every_condition_does():
    yes, no, open_ = (Condition("a", 1, ">", 1, holds, "") for holds in (True, False, None))
    found = [Certificate("", list(part), [], []).holds for part in [(yes,), (yes, no, open_), (yes, open_), ()]]
    assert found == [True, False, None, None]


def test_rounding_below_zero_is_still_convex():
    r = np.array([1.0, 2.0])
    assert is_convex(r, np.array([-1e-17, 0.5]))
    assert not is_convex(r, np.array([-1e-6, 0.5]))
    assert not is_convex(r, None)
