"""What became of a claim can be read without the claims around it."""

import math

import pytest

from benchmarks.bench import Claim
from benchmarks.claims import FAILS, HOLDS, Case, Finding
from benchmarks.tally import literal, sentence
from benchmarks.verdict import OTHER

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
