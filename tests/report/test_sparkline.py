"""A curve in one line of text: its first and last block, its width, and when it is logarithmic."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpifed.report.sparkline import BLOCKS, gaps, sparkline


def test_a_falling_curve_falls_and_decades_are_shown_in_logarithms():
    assert sparkline(np.arange(8.0)[::-1]) == (BLOCKS[::-1], False)
    assert sparkline(10.0 ** -np.arange(8.0)) == (BLOCKS[::-1], True)
    assert sparkline(np.array([99.0, 1.0])) == ("█▁", False)
    assert sparkline(np.array([100.0, 1.0])) == ("█▁", True)
    assert sparkline(np.array([1e9, 1.0, 0.0])) == ("█▁▁", False)
    assert sparkline(np.array([-1e9, 1.0])) == ("▁█", False)


def test_long_runs_have_the_width_of_short_ones_and_keep_their_ends():
    for rounds in (2, 40, 41, 1000, 100_000):
        curve, _ = sparkline(np.linspace(5.0, 1.0, rounds))
        assert len(curve) == min(rounds, 40)
        assert (curve[0], curve[-1]) == ("█", "▁")
        assert list(curve) == sorted(curve, reverse=True)


def test_what_does_not_move_has_no_curve_and_rounds_without_a_value_are_left_out():
    for values in ([], [1.0], [2.0, 2.0], [np.nan, 1.0], [np.inf, -np.inf]):
        assert sparkline(np.array(values)) == ("", False)
    assert sparkline(np.array([4.0, np.nan, 2.0, np.inf, 0.0]))[0] == "█▅▁"


@given(st.lists(st.floats(), max_size=60), st.integers(2, 50))
def test_any_values_make_a_line_of_blocks(values, width):
    curve, _ = sparkline(np.array(values, float), width)
    assert len(curve) <= width
    assert set(curve) <= set(BLOCKS)


def test_values_that_have_settled_are_shown_by_their_distance_from_the_least_but_not_what_rounding_decides():
    values = 1.8 + 10.0 ** -np.arange(8.0)
    np.testing.assert_allclose(gaps(values), [*(values[:-1] - values[-1]), values[-2] - values[-1]])
    assert gaps(np.arange(8.0)) is None
    assert gaps(np.array([2.0, 1.5, 1.25, 1.125])) is None
    values = np.array([2.0, 1.0, 1.0, 1.0 + 2e-16, 1.0 - 1e-16, 1.0])
    assert sparkline(gaps(values)) == ("█▁▁▁▁▁", True)
    assert gaps(1 + 1e-16 * np.arange(9.0)) is None
    assert gaps(np.array([])) is None
    assert gaps(np.array([np.nan, np.inf])) is None


@given(st.lists(st.floats(-1e300, 1e300), max_size=60))
def test_distances_are_positive(values):
    found = gaps(np.array(values, float))
    assert found is None or (found > 0).all()
