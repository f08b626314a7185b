"""Step sizes are their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.algorithms.parts.step_sizes import Constant, Log2, SqrtSamples, Step

iterations = st.integers(0, 10**6)


factors = st.floats(1e-6, 1e3)


d = np.array([[3.0], [50.0], [7.0]])


@given(a=factors, k=iterations)
def test_log2(a, k):
    assert np.allclose(Log2(a=a).gamma(k, 5, d), a / np.log2(k + 2), rtol=1e-14)


def test_log2_begins_with_its_factor():
    assert Log2(a=0.25).gamma(0, 5, d) == 0.25


@given(a=factors, k=iterations)
def test_constant(a, k):
    assert Constant(a=a).gamma(k, 5, d) == a


@given(a=factors, k=iterations, k0=st.integers(1, 50))
def test_sqrt_samples(a, k, k0):
    rounds = k // k0
    wanted = [[a * size / (2 * k0 + rounds) ** 0.5] for size in (3, 50, 7)]
    assert np.allclose(SqrtSamples(a=a).gamma(k, k0, d), wanted, rtol=1e-14)


def test_sqrt_samples_is_constant_within_a_round():
    first, last, following = (SqrtSamples().gamma(k, 5, d) for k in (5, 9, 10))
    assert np.array_equal(first, last)
    assert (following < last).all()


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({}, Log2()),
        ("constant", Constant()),
        ({"name": "sqrt-samples", "a": 3}, SqrtSamples(a=3.0)),
        ({"a": 0.5}, Log2(a=0.5)),
    ],
)
def test_a_step_rule_is_named_in_a_table(table, rule):
    assert Step.build(table, "algorithm.step") == rule
