"""A verdict says what the spread of the seeds can explain."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verdict import AGREES, NONE, OFF, OPEN, SPREAD, TIME, Sample, judge


def test_a_number_near_the_mean_agrees_one_far_is_off():
    seeds = Sample((10.0, 11.0, 12.0, 11.0, 10.5, 11.5, 11.0, 10.0, 12.0, 11.0))
    assert judge(seeds, 11.2, 20, False).kind == AGREES
    assert judge(seeds, 12.4, 20, False).kind == SPREAD
    assert judge(seeds, 15.0, 20, False) == (OFF, "-27 %")
    assert judge(seeds, 22.0, 20, True) == (TIME, "0.5 × theirs")
    assert judge(Sample((99.5, 100.5, 100.0)), 102.9, 20, False) == (OFF, "-3 %")
    assert judge(Sample((0.904, 0.9041, 0.9042)), 0.91, 20, False) == (OFF, "-0.6 %")
    assert judge(Sample((), 0, "no data"), 11.0, 20, False) == (NONE, "no data")


def test_a_number_never_reached_is_off_where_runs_were_long_enough():
    never = (math.inf,) * 3
    assert judge(Sample((math.inf, 30.0, 31.0)), 11.0, 20, False) == (OFF, "not reached with 1 of 3 seeds")
    assert judge(Sample(never, least=100.0), 96.0, 20, False) == (OFF, "not reached with 3 of 3 seeds")
    assert judge(Sample(never, least=100.0), 418.0, 20, False) == (OPEN, "above 100 here")
    assert judge(Sample(never, least=100.0), "> 100", 20, False) == (AGREES, "not reached here either")
    assert judge(Sample(never, least=100.0), "> 500", 20, False) == (OPEN, "above 100 here")
    assert judge(Sample((100.0,) * 3, 3, least=100.0), "> 100", 20, False).kind == AGREES
    assert judge(Sample((120.0, 130.0, math.inf)), "> 100", 20, False).kind == AGREES
    assert judge(Sample((20.0, 130.0, math.inf)), "> 100", 20, False) == (OFF, "reached with 1 of 3 seeds")


def test_few_seeds_and_wide_spreads_leave_it_open():
    assert judge(Sample((10.0, 12.0)), 11.0, 20, False) == (OPEN, "+0.0 %")
    assert judge(Sample((math.inf,) * 2), 11.0, 20, False).kind == OPEN
    assert judge(Sample((math.inf,) * 2), "> 100", 20, False).kind == OPEN
    assert judge(Sample((14.0, 19.0, 22.0)), 3.0, 1, False) == (OPEN, "+511 %, wide spread")
    assert judge(Sample((0.1, -0.1, 0.3)), 0.0, 1, False).kind == AGREES


def test_counts_that_never_vary_still_have_a_spread():
    assert judge(Sample((5.0,) * 5), 5.1, 20, False).kind == AGREES
    assert judge(Sample((5.0,) * 20), 6.1, 20, False).kind == OFF
    assert judge(Sample((0.5,) * 20), 0.6, 20, False).kind == OFF


@given(st.lists(st.floats(1, 100), min_size=3, max_size=20), st.floats(0, 50), st.floats(0, 50))
def test_a_number_farther_away_never_has_a_better_verdict(values, near, far):
    near, far = sorted((near, far))
    worth = [AGREES, SPREAD, OPEN, OFF]
    ours = Sample(tuple(values))
    kinds = [judge(ours, ours.mean + away, 20, False).kind for away in (near, far)]
    assert far - near < 1 or worth.index(kinds[0]) <= worth.index(kinds[1])
