"""A claim holds, does not hold, is a tie, or is undecided, and what became of it can be read alone."""

import math

import numpy as np
import pytest

from benchmarks.bench import Bench, Block, Claim, Columns
from benchmarks.claims import (
    FAILS,
    HOLDS,
    TIE,
    Case,
    Finding,
    alike,
    below,
    chance,
    difference,
    examine,
    falling,
    steady,
)
from benchmarks.grid import Cell
from benchmarks.tally import held, literal, sentence
from benchmarks.verdict import OTHER, Sample

INF = math.inf
LIMIT = "is not decided: runs hit a limit"


def constant(*means):
    """Three seeds that do not vary, for each mean."""
    return [Sample((float(mean),) * 3) for mean in means]


def claim(a, b, **said):
    """What is said of a claim on rows A and B with these samples, one for each column."""
    values = list(range(len(a)))
    columns = Columns(key="algorithm.k0", values=values)
    block = Block(name="", rows=[{"name": "A"}, {"name": "B"}])
    bench = Bench(title="", source="", seeds=1, report=1, columns=columns, block=[block])
    pairs = [(row, value, found[value]) for row, found in (("A", a), ("B", b)) for value in values]
    samples = {(Cell("", row, value), "rounds"): sample for row, value, sample in pairs}
    return held(examine(bench, Claim(text="", measure="rounds", **said), samples))


@pytest.mark.parametrize(
    ("kind", "a", "b", "text"),
    [
        ("order", [1, 2, 3], [2, 3, 4], "holds in all 3 cases"),
        ("order", [1, 3, 5], [2, 3, 4], "holds in 1 of 3 cases, 1 tie"),
        ("order", [1, 2, 5], [INF] * 3, "holds in all 3 cases"),
        ("order", [INF] * 3, [1, 2, 5], "does not hold in any of 3 cases"),
        ("order", [1, 2, INF], [INF] * 3, "holds in both cases, 1 not decided"),
        ("order", [math.nan] * 3, [1] * 3, "is not available"),
        ("falls", [INF, 2, INF], [3, 2, 1], "holds in 1 of 2 cases"),
        ("rises", [INF] * 3, [INF] * 3, LIMIT),
        ("falls", [INF, 2, 1], None, "holds in the only case"),
        ("rises", [1, 2, 3], None, "holds in the only case"),
        ("flat", [1, 1.1, 1], [1, 2, 1], "holds in 1 of 2 cases"),
        ("equal", [1, 1, 1], [1.01, 1, 1.3], "holds in 2 of 3 cases"),
        ("below", [1, 1, 1], [1.01, 1, 1.3], "holds in 4 of 6 cases"),
    ],
)
def test_claims(kind, a, b, text):
    limits = {"equal": {"within": 0.02}, "below": {"bound": 1.0}}.get(kind, {})
    rows = ["A"] if b is None else ["A", "B"]
    assert claim(constant(*a), constant(*(b or a)), **{kind: rows}, **limits) == text


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (Sample((100.0,) * 2, 2), Sample((100.0,) * 2, 2), LIMIT),
        (Sample((100.0,) * 2, 2), Sample((90.0,) * 2), "does not hold in the only case"),
        (Sample((90.0,) * 2), Sample((100.0,) * 2, 2), "holds in the only case"),
        (Sample((5.0, 7.0, 9.0)), Sample((6.0, INF, INF)), "holds in the only case"),
        (Sample((5.0, 7.0, 9.0)), Sample((4.0, INF, INF)), LIMIT),
        (Sample((5.0, INF, INF)), Sample((6.0, INF, INF)), LIMIT),
        (Sample((9.0, 5.0), 1, ends=(True, False)), Sample((12.0, 8.0)), LIMIT),
        (Sample((5.0,)), Sample((6.0,)), "is not decided: a single seed"),
    ],
)
def test_runs_that_ended_early_and_single_seeds_decide_little(a, b, text):
    assert claim([a], [b], order=["A", "B"]) == text
    assert claim([Sample((8.0, 12.0))], [Sample((11.0, 9.0))], equal=["A", "B"]).endswith("the error is too large")
    assert claim([Sample((100.0,) * 2, 2)], [Sample()], below=["A"], bound=200.0) == LIMIT


def test_runs_with_the_same_seed_are_compared_and_factors_where_all_numbers_are_positive():
    hard = np.array([10.0, 50.0, 200.0, 400.0])
    assert below(Sample(tuple(hard)), Sample(tuple(hard * [1.1, 1.2, 1.1, 1.2]))) == HOLDS
    assert below(Sample(tuple(hard)), Sample(tuple(hard[::-1] * 1.1))) == TIE
    shifted = Sample(tuple(hard[1:] * [1.1, 1.12, 1.1]), seeds=(1, 2, 3))
    assert below(Sample(tuple(hard)), shifted) == HOLDS
    assert difference(Sample((1.0,)), Sample((2.0,), seeds=(5,))) == (-INF, INF)
    a, b = Sample((1.0, 2.0, 3.0)), Sample((2.0, 3.5, 4.0))
    assert (below(a, b), below(a, b, 20)) == (HOLDS, TIE)  # more comparisons need more evidence
    small, large = Sample((1e-5, 2e-6, 3e-5, 5e-6)), Sample((1e-3, 1e-2, 2e-4, 6e-4))
    assert below(small, large) == HOLDS
    assert below(Sample((-1e-5, *small.values[1:])), large) == TIE
    assert difference(*constant(1, 2)) == pytest.approx((-math.log(2),) * 2)
    pairs = [(1.0, 1.25), (-1.0, -1.25), (-1.0, 1.0)]
    assert [alike(Sample((a, a)), Sample((b, b)), 0.25) for a, b in pairs] == [HOLDS, HOLDS, FAILS]


def test_an_order_of_equal_laws_is_seen_in_one_case_of_twenty():
    draw, found = np.random.default_rng(3), []
    for _ in range(400):
        data = draw.normal(0.0, 5.0, 10)
        found.append(below(*(Sample(tuple(20 + data + draw.normal(0.0, 1.0, 10))) for _ in range(2))))
    assert found.count(TIE) / 400 >= 0.92
    far = [Sample(tuple(20 + data + draw.normal(by, 1.0, 10))) for by in (0.0, 2.0)]
    assert below(*far) == HOLDS


def test_a_trend_needs_more_than_a_lower_end_and_a_rise_within_the_error_does_not_refute_a_fall():
    trends = {
        HOLDS: [(9, 7, 5, 3, 1), (9, 5, 3, 1, 1), (9, 5), (9, 5, 1)],
        TIE: [(9, 1, 1, 1, 1), (9, 9, 9, 9, 9), (9, 5, 5)],
        FAILS: [(9, 5, 1, 3, 8), (1, 3, 5, 7, 9)],
    }
    for kind, cases in trends.items():
        assert [falling(constant(*means)) for means in cases] == [kind] * len(cases)
    noisy = [Sample(tuple(mean + np.array([-0.5, 0.1, 0.4]))) for mean in (24.6, 14.0, 11.0, 10.7)]
    assert falling([*noisy, Sample((10.5, 10.7, 11.1))]) == HOLDS


def test_kendalls_probabilities_are_exact_and_a_trend_of_equal_laws_is_rarely_seen():
    known = {(4, 6): 1 / 24, (5, 8): 5 / 120, (5, 6): 14 / 120, (3, -3): 1.0}
    assert {case: chance(*case) for case in known} == pytest.approx(known)
    assert steady([5.0, 4.0, 3.0, 1.0, 2.0])
    assert not steady([5.0, 3.0, 4.0, 1.0, 2.0])
    draw = np.random.default_rng(5)
    found = [falling([Sample(tuple(draw.normal(20.0, 1.0, 10))) for _ in range(5)]) for _ in range(300)]
    assert found.count(HOLDS) <= 0.05 * 300
    assert found.count(FAILS) <= 0.08 * 300


CLAIM = Claim(text="A is fast.", where="page 1", measure="rounds", order=["A", "B"])
YES = [Case(f"Example {k}, k₀ = 5", {"A": 3.0, "B": 100.0 + k}) for k in range(5)]
TIES = [Case("Example 8", {"A": 7.0, "B": 7.0})]
NO = [Case("Example 9", {"A": 7.0, "B": math.inf})]
SAID = "“A is fast”, page 1, "
TESTED = ", tested as CR of A < B: "


@pytest.mark.parametrize(
    ("yes", "no", "ties", "open", "text"),
    [
        (YES[:1], [], [], 0, f"✓ {SAID}holds in the only case{TESTED}Example 0, k₀ = 5 (A 3, B 100)."),
        (YES[:2], [], [], 1, f"holds in both cases, 1 not decided{TESTED}Example 0, k₀ = 5 (A 3, B 100); Example 1"),
        (YES, [], [], 0, "; Example 2, k₀ = 5 (A 3, B 102); and 2 more."),
        (YES[:1], NO, [], 0, "(A 3, B 100); but not Example 9 (A 7, B never)."),
        ([], NO * 3, [], 0, f"✗ {SAID}does not hold in any of 3 cases{TESTED}Example 9 (A 7, B never)"),
        (YES[:1], NO, TIES, 0, f"~ {SAID}holds in 1 of 3 cases, 1 tie, "),
        ([], NO, TIES, 0, f"✗ {SAID}fails in 1 of 2 cases, 1 tie, "),
        ([], [], TIES, 0, f"≈ {SAID}is a tie in the only case{TESTED}Example 8 (A 7, B 7)."),
        ([], [], [], 2, f"? {SAID}is not decided: runs hit a limit."),
        ([], [], [], 0, f"? {SAID}is not available."),
    ],
)
def test_a_claim_is_a_sentence_with_its_numbers(yes, no, ties, open, text):
    assert text in sentence(Finding(CLAIM, yes, no, ties, ["runs hit a limit"] * open), "k₀")


def test_cases_on_other_data_do_not_count_beside_those_on_the_papers_and_what_fails_says_why():
    other = [case._replace(other=True) for case in NO]
    assert Finding(CLAIM, YES, other).kind == HOLDS
    assert sentence(Finding(CLAIM, YES[:1], other), "").startswith(f"✓ {SAID}holds in 1 of 2 cases")
    assert Finding(CLAIM, [], other).kind == OTHER
    assert Finding(CLAIM, [case._replace(other=True) for case in YES], NO).kind == FAILS
    # a claim that does not hold says why
    claim = Claim(text="A is fast.", measure="rounds", order=["A", "B"], why="B is a gradient method.")
    assert sentence(Finding(claim, [], NO), "").endswith("(A 7, B never). Why: B is a gradient method.")
    assert "Why" not in sentence(Finding(claim, YES), "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ({"falls": ["A"]}, "tested as CR falling with k₀: A (k₀ = 1: 9, k₀ = 5: 3)."),
        ({"rises": ["A"]}, "tested as CR rising with k₀"),
        ({"flat": ["A"], "within": 0.1}, "tested as CR the same up to 10 % with k₀"),
        ({"equal": ["A"], "within": 0.02}, "tested as equal CR up to 2 %"),
        ({"below": ["A"], "bound": 12.5}, "tested as CR of at most 12.5"),
    ],
)
def test_it_says_what_was_tested(kind, text):
    claim = Claim(text="A", measure="rounds", **kind)
    assert text in sentence(Finding(claim, [Case("A", {"k₀ = 1": 9.0, "k₀ = 5": 3.0})], []), "k₀")
    assert literal("f* of FedGiA_D < [0, 1]") == r"f\* of FedGiA_D \< \[0, 1]"  # nothing for Markdown to interpret
