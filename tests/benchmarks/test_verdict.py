"""A verdict says what the spread of the seeds can explain."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench import Printed
from benchmarks.verdict import AGREES, ALIKE, NONE, OFF, OPEN, TIME, Sample, interval, judge, printed, telling

TEN = Sample((10.0, 11.0, 12.0, 11.0, 10.5, 11.5, 11.0, 10.0, 12.0, 11.0))


def test_a_number_near_the_mean_up_to_half_a_unit_of_its_last_digit_agrees_and_one_far_is_off():
    assert judge(TEN, 11.2, 20) == (AGREES, "-2 %")
    assert judge(TEN, 12.4, 20) == (OFF, "-11 %")
    assert judge(TEN, 22.0, 20, True) == (TIME, "0.5 × theirs")
    assert judge(Sample((99.5, 100.5, 100.0)), 102.9, 20) == (OFF, "-3 %")
    assert judge(Sample((0.904, 0.9041, 0.9042)), 0.91, 20) == (OFF, "-0.6 %")
    assert judge(Sample((), 0, "no data"), 11.0, 20) == (NONE, "no data")
    # a single run may lie farther from our mean than a mean of twenty
    assert [judge(TEN, number, 1).kind for number in (12.4, 13.4)] == [AGREES, OFF]
    # few seeds and wide intervals leave it open
    assert judge(Sample((10.0, 12.0)), 11.0, 20) == (OPEN, "+0.0 %, 2 seeds")
    assert {judge(Sample((math.inf,) * 2), number, 20).kind for number in (11.0, "> 100")} == {OPEN}
    assert judge(Sample((14.0, 19.0, 22.0)), 18.0, 20) == (OPEN, "+2 %, interval ± 63 %")
    assert judge(Sample((14.0, 19.0, 22.0)), 3.0, 20) == (OFF, "+511 %")
    assert judge(Sample((0.1, -0.1, 0.3)), 0.0, 1).kind == AGREES
    assert [printed(Printed(text)) for text in ("3.0", "3.", "0.90", "1e-3")] == [0.05, 0.5, 0.005, 0.0005]
    seeds = Sample((3.3, 3.31, 3.32))
    assert (judge(seeds, Printed("3.0"), 20).kind, judge(seeds, 3, 20).kind) == (OFF, AGREES)


def test_a_number_never_reached_is_off_where_runs_were_long_enough():
    never = (math.inf,) * 3
    assert judge(Sample((math.inf, 30.0, 31.0)), 11.0, 20) == (OFF, "not reached with 1 of 3 seeds")
    assert judge(Sample(never, least=100.0), 96.0, 20) == (OFF, "not reached with 3 of 3 seeds")
    assert judge(Sample(never, least=100.0), 418.0, 20) == (OPEN, "above 100 here")
    assert judge(Sample(never, least=100.0), "> 100", 20) == (AGREES, "not reached here either")
    assert judge(Sample((100.0,) * 3, 3, least=100.0), "> 100", 20).kind == AGREES
    assert judge(Sample((120.0, 130.0, math.inf)), "> 100", 20).kind == AGREES
    assert judge(Sample((20.0, 130.0, math.inf)), "> 100", 20) == (OFF, "reached with 1 of 3 seeds")
    ended = Sample((20.0, 200.0, 200.0), 2, least=200.0, ends=(False, True, True))
    assert judge(ended, "> 100", 20) == (OFF, "reached with 1 of 3 seeds")
    # and runs that failed do not agree
    assert judge(Sample((11.0, math.nan, 11.0)), 11.0, 20) == (OFF, "failed with 1 of 3 seeds")
    assert judge(Sample((math.nan,) * 3, 0, "failed: diverged"), 11.0, 20) == (OFF, "failed with 3 of 3 seeds")
    assert judge(Sample((math.nan,) * 3), 11.0, 20) == (NONE, "no number")


def test_counts_that_never_vary_still_have_an_interval_and_medians_are_compared_by_order_statistics():
    wide = {(3, 20): 0.55, (10, 20): 0.3, (3, 1): 1.0, (20, 1): 0.0, (3, math.inf): 0.527}  # seeds, trials
    for (seeds, trials), by in wide.items():
        assert interval(Sample((5.0,) * seeds), trials) == pytest.approx((5 - by, 5 + by), abs=1e-3)
    assert interval(Sample((0.5,) * 20), 20) == (0.5, 0.5)
    # and agree where the paper has the same count
    assert judge(Sample((1.0,) * 3), Printed("1.0"), 20).kind == AGREES
    assert judge(Sample((1.0,) * 3), Printed("1.3"), 20) == (OPEN, "-23 %, interval ± 46 %")
    assert judge(Sample((1.0,) * 3), Printed("1.9"), 20).kind == OFF
    modes = Sample(tuple(23.0 + k / 10 for k in range(25)) + tuple(38.0 + k / 10 for k in range(26)))
    assert judge(modes, 38.5, 20, center="median").kind == OPEN  # between the modes nothing is known
    one = Sample(tuple(23.0 + k / 10 for k in range(50)))
    assert interval(one, math.inf, "median") == pytest.approx((24.7, 26.2))  # ranks 18 and 33
    assert judge(one, 26.0, 20, center="median").kind == AGREES
    assert judge(one, 30.0, 20, center="median").kind == OFF
    some = Sample((*one.values[:-9], *(math.inf,) * 9))
    assert (judge(some, 26.0, 20, center="median").kind, judge(some, 26.0, 20).kind) == (AGREES, OFF)
    assert judge(TEN, 11.0, 1, center="median") == (OPEN, "+0.0 %, interval ± ∞")


def told(ours, paper, others, trials=20, center="mean"):
    """The verdict on a row beside others of the same column."""
    return telling(judge(ours, paper, trials, center=center), ours, paper, others, trials, center)


def test_a_verdict_that_could_not_fail_for_another_row_tells_nothing():
    assert told(TEN, 11.2, []).kind == AGREES  # a row alone has nothing to be told apart from
    assert told(TEN, 11.2, [30.0, "> 100"]).kind == AGREES
    # another row's number agrees with the same runs
    assert told(TEN, 11.2, [30.0, 10.8]) == (ALIKE, "-2 %, and another row's 10.8 fits too")
    # the interval reaches farther than a quarter of the spread between rows
    assert told(TEN, 11.2, [12.5]) == (ALIKE, "-2 %, ± 0.67 where rows spread over 1.3")
    assert told(TEN, 11.2, [14.0]).kind == AGREES
    # rows with the same number are one number: nothing could fail where all are alike
    assert told(TEN, 11.2, [11.2, 30.0]).kind == AGREES
    assert told(TEN, 11.2, [11.2, 11.2]).kind == ALIKE
    # only what agrees is asked whether it could fail
    assert told(TEN, 22.0, [11.0]).kind == OFF
    assert told(Sample((10.0, 12.0)), 11.0, [11.1]).kind == OPEN
    never = Sample((math.inf,) * 3, least=100.0)
    assert told(never, "> 100", ["> 100", 28.0]).kind == AGREES
    assert told(never, "> 100", ["> 100", "> 100"]) == (ALIKE, "no row reaches it")
    many = Sample(tuple(40.0 + k / 10 for k in range(51)))
    assert told(many, 42.6, [200.0], center="median").kind == AGREES
    assert told(many, 42.6, [42.0, 200.0], center="median").kind == ALIKE


@given(st.lists(st.floats(1, 100), min_size=3, max_size=10), st.floats(1, 100), st.lists(st.floats(1, 100), min_size=1))
def test_the_runs_of_a_row_that_agrees_never_agree_with_a_row_whose_number_is_another(values, paper, others):
    ours = Sample(tuple(values))
    if told(ours, paper, others).kind == AGREES:
        assert all(other == paper or judge(ours, other, 20).kind == OFF for other in others)


MORE = [(3, 1), (10, 1), (10, 20), (50, 20)]  # seeds and trials
LAWS = {
    "normal": lambda draw, size: draw.normal(10.0, 1.0, size),
    "rounds 3, rarely 4": lambda draw, size: 3.0 + (draw.random(size) < 0.05),
    "rounds 40 ± 6": lambda draw, size: draw.poisson(40.0, size).astype(float),
    "two modes": lambda draw, size: np.where(draw.random(size) < 0.5, 23.0, 38.0) + draw.integers(-2, 3, size),
}


def share(kind, law, n, trials, center="mean", shift=0.0, cases=300):
    """How often a paper's number of ``trials`` runs of the same law, moved by ``shift``, gets this verdict."""
    draw, found = np.random.default_rng(7), 0
    for _ in range(cases):
        ours, theirs = LAWS[law](draw, n), LAWS[law](draw, trials)
        number = Printed(f"{getattr(np, center)(theirs) * (1 + shift):.1f}")
        found += judge(Sample(tuple(ours)), number, trials, center=center).kind == kind
    return found / cases


MEANS = [("mean", 3, 20), *(("mean", *case) for case in MORE)]
MEDIANS = [("median", 10, 20), ("median", 50, 1), ("median", 50, 20)]
CASES = [(law, *case) for law in LAWS for case in (*MEANS, *MEDIANS)]
FIRST = [(law, *MEANS[0]) for law in LAWS] + [("two modes", *MEDIANS[0])]


@pytest.mark.parametrize(
    ("law", "center", "n", "trials"),
    [*FIRST, *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES if case not in FIRST)],
)
def test_at_most_one_number_of_the_same_law_in_twenty_is_off(law, center, n, trials):
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300) if center == "mean" else 0.05
    if law == "two modes" and n == 3:  # all three seeds may lie in one mode
        most = 0.3
    assert share(OFF, law, n, trials, center) <= most


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_ten_seeds_decide_most_numbers_of_the_same_law_and_one_of_another_rarely_agrees(law):
    assert share(AGREES, law, 10, 20) >= 0.8
    for seeds, shift, most in ((10, 0.25, 0.1), (3, 0.25, 0.25), (3, 0.5, 0.02)):
        assert law == "two modes" or share(AGREES, law, seeds, 20, shift=shift) <= most
