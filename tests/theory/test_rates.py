"""A rate is fitted between two shares of the first value."""

import math

import numpy as np
import pytest

from mpifed.theory.rates import fit_line


def test_a_geometric_sequence_gives_its_factor():
    rounds = np.arange(60)
    found = fit_line(rounds, 7 * 0.6**rounds)
    assert found.factor == pytest.approx(0.6, rel=1e-12)
    assert found.r2 == pytest.approx(1, abs=1e-12)


def test_what_lies_above_and_below_the_shares_is_left_out():
    values = np.concatenate([np.full(5, 1.0), 10.0 ** -np.arange(1, 10), np.full(5, 1e-14)])
    assert fit_line(np.arange(len(values)), values).slope == pytest.approx(-1)


def test_rounds_that_were_not_evaluated_are_left_out():
    values = 0.5 ** np.arange(40.0)
    values[1::2] = np.nan
    assert fit_line(np.arange(40), values).factor == pytest.approx(0.5)


@pytest.mark.parametrize("values", [np.ones(9), np.array([1.0, 1e-3, 1e-4]), np.zeros(0), np.full(9, -1.0)])
def test_without_three_values_there_is_no_rate(values):
    assert math.isnan(fit_line(np.arange(len(values)), values).slope)
    assert math.isnan(fit_line(np.arange(6), np.array([1.0, *[1e-3] * 5])).r2), "a curve that stands still"
