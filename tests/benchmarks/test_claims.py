"""A claim holds, does not hold, is a tie, or is undecided because runs hit a limit or seeds are too few."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.bench import Bench
from benchmarks.claims import examine
from benchmarks.differences import FAILS, HOLDS, TIE, UNDECIDED, alike, below, chance, difference, falling, steady
from benchmarks.grid import Cell
from benchmarks.parts import Block, Claim, Columns
from benchmarks.verdict import Sample


def bench(values):
    return Bench(
        title="",
        source="",
        seeds=1,
        report=1,
        columns=Columns(key="algorithm.k0", values=values),
        block=[Block(name="", rows=[{"name": "A"}, {"name": "B"}])],
    )


def claim(samples, **said):
    """The outcome of a claim on rows A and B with these means, each of three seeds that do not vary."""
    values = list(range(1, len(samples[0]) + 1))
    found = {
        (Cell("", row, value), "rounds"): Sample((number,) * 3)
        for row, numbers in zip("AB", samples, strict=True)
        for value, number in zip(values, numbers, strict=True)
    }
    return examine(bench(values), Claim(text="", measure="rounds", **said), found).text


INF = math.inf


@pytest.mark.parametrize(
    ("a", "b", "said", "text"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds"),
        ([1.0, 2.0, 5.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds in 2 of 3"),
        ([1.0, 3.0, 5.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds in 1 of 3, 1 tie"),
        ([1.0, 3.0, 5.0], [1.0, 3.0, 5.004], {"order": ["A", "B"]}, "3 ties"),
        ([1.0, 2.0, 5.0], [INF] * 3, {"order": ["A", "B"]}, "holds"),
        ([INF] * 3, [1.0, 2.0, 5.0], {"order": ["A", "B"]}, "does not hold"),
        ([1.0, 2.0, INF], [INF] * 3, {"order": ["A", "B"]}, "holds, 1 not decided"),
        ([1.0, INF, INF], [INF, 1.0, INF], {"order": ["A", "B"]}, "holds in 1 of 2, 1 not decided"),
        ([INF, 2.0, INF], [3.0, 2.0, 1.0], {"falls": ["A", "B"]}, "holds in 1 of 2"),
        ([INF] * 3, [INF] * 3, {"rises": ["A", "B"]}, "not decided: runs hit a limit"),
        ([3.0, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A", "B"]}, "holds in 1 of 2, 1 tie"),
        ([INF, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A"]}, "holds"),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], {"rises": ["A"]}, "holds"),
        ([1.0, 1.1, 1.0], [1.0, 2.0, 1.0], {"flat": ["A", "B"]}, "holds in 1 of 2"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"equal": ["A", "B"], "within": 0.02}, "holds in 2 of 3"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"below": ["A", "B"], "bound": 1.0}, "holds in 4 of 6"),
        ([math.nan] * 3, [1.0] * 3, {"order": ["A", "B"]}, "not available"),
    ],
)
def test_claims(a, b, said, text):
    assert claim([a, b], **said) == text


def order(a, b):
    found = {(Cell("", "A", 1), "rounds"): a, (Cell("", "B", 1), "rounds"): b}
    return examine(bench([1]), Claim(text="", measure="rounds", order=["A", "B"]), found).text


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (Sample((100.0,) * 2, 2), Sample((100.0,) * 2, 2), "not decided: runs hit a limit"),
        (Sample((100.0,) * 2, 2), Sample((90.0,) * 2), "does not hold"),
        (Sample((90.0,) * 2), Sample((100.0,) * 2, 2), "holds"),
        (Sample((5.0, 7.0, 9.0)), Sample((6.0, math.inf, math.inf)), "holds"),
        (Sample((5.0, 7.0, 9.0)), Sample((4.0, math.inf, math.inf)), "not decided: runs hit a limit"),
        (Sample((5.0, INF, INF)), Sample((6.0, INF, INF)), "not decided: runs hit a limit"),
        (Sample((9.0, 5.0), 1, ends=(True, False)), Sample((12.0, 8.0)), "not decided: runs hit a limit"),
        (Sample((5.0,)), Sample((6.0,)), "not decided: a single seed"),
    ],
)
def test_runs_that_ended_early_and_single_seeds_decide_little(a, b, text):
    assert order(a, b) == text


def test_runs_with_the_same_seed_are_compared():
    hard = np.array([10.0, 50.0, 200.0, 400.0])
    assert below(Sample(tuple(hard)), Sample(tuple(hard * [1.1, 1.2, 1.1, 1.2]))) == HOLDS
    assert below(Sample(tuple(hard)), Sample(tuple(hard[::-1] * 1.1))) == TIE
    shifted = Sample(tuple(hard[1:] * [1.1, 1.12, 1.1]), seeds=(1, 2, 3))
    assert below(Sample(tuple(hard)), shifted) == HOLDS
    assert difference(Sample((1.0,)), Sample((2.0,), seeds=(5,))) == (-math.inf, math.inf)


def test_factors_are_compared_where_all_numbers_are_positive():
    small, large = Sample((1e-5, 2e-6, 3e-5, 5e-6)), Sample((1e-3, 1e-2, 2e-4, 6e-4))
    assert below(small, large) == HOLDS
    assert below(Sample((-1e-5, *small.values[1:])), large) == TIE
    assert difference(Sample((1.0, 1.0)), Sample((2.0, 2.0))) == pytest.approx((-math.log(2),) * 2)
    assert alike(Sample((1.0, 1.0)), Sample((1.25, 1.25)), 0.25) == HOLDS
    assert alike(Sample((-1.0, -1.0)), Sample((-1.25, -1.25)), 0.25) == HOLDS
    assert alike(Sample((-1.0, -1.0)), Sample((1.0, 1.0)), 0.25) == FAILS


def test_more_comparisons_need_more_evidence():
    a, b = Sample((1.0, 2.0, 3.0)), Sample((2.0, 3.5, 4.0))
    assert (below(a, b), below(a, b, 20)) == (HOLDS, TIE)


def test_an_order_of_equal_laws_is_seen_in_one_case_of_twenty():
    draw, found = np.random.default_rng(3), []
    for _ in range(400):
        data = draw.normal(0.0, 5.0, 10)
        found.append(below(*(Sample(tuple(20 + data + draw.normal(0.0, 1.0, 10))) for _ in range(2))))
    assert found.count(TIE) / 400 >= 0.92
    far = [Sample(tuple(20 + data + draw.normal(by, 1.0, 10))) for by in (0.0, 2.0)]
    assert below(*far) == HOLDS


def constant(*means):
    return [Sample((mean,) * 3) for mean in means]


@pytest.mark.parametrize(
    ("means", "kind"),
    [
        ((9, 7, 5, 3, 1), HOLDS),
        ((9, 5, 3, 1, 1), HOLDS),
        ((9, 1, 1, 1, 1), TIE),
        ((9, 5, 1, 3, 8), FAILS),
        ((9, 9, 9, 9, 9), TIE),
        ((1, 3, 5, 7, 9), FAILS),
        ((9, 5), HOLDS),
        ((9, 5, 5), TIE),
        ((9, 5, 1), HOLDS),
    ],
)
def test_a_trend_needs_more_than_a_lower_end(means, kind):
    assert falling(constant(*map(float, means))) == kind


def test_a_rise_within_the_error_does_not_refute_a_fall():
    noisy = [Sample(tuple(mean + np.array([-0.5, 0.1, 0.4]))) for mean in (24.6, 14.0, 11.0, 10.7)]
    noisy.append(Sample((10.5, 10.7, 11.1)))
    assert falling(noisy) == HOLDS


def test_kendalls_probabilities_are_exact():
    assert chance(4, 6) == pytest.approx(1 / 24)
    assert chance(5, 8) == pytest.approx(5 / 120)
    assert chance(5, 6) == pytest.approx(14 / 120)
    assert chance(3, -3) == 1.0
    assert steady([5.0, 4.0, 3.0, 1.0, 2.0])
    assert not steady([5.0, 3.0, 4.0, 1.0, 2.0])


def test_a_trend_of_equal_laws_is_rarely_seen():
    draw = np.random.default_rng(5)
    found = [falling([Sample(tuple(draw.normal(20.0, 1.0, 10))) for _ in range(5)]) for _ in range(300)]
    assert found.count(HOLDS) <= 0.05 * 300
    assert found.count(FAILS) <= 0.08 * 300


def test_equal_means_of_too_few_or_too_different_seeds_are_not_decided():
    wide = {(Cell("", row, 1), "rounds"): Sample(values) for row, values in (("A", (8.0, 12.0)), ("B", (11.0, 9.0)))}
    found = examine(bench([1]), Claim(text="", measure="rounds", equal=["A", "B"]), wide)
    assert (found.kind, found.text) == (UNDECIDED, "not decided: the error is too large")
