"""A claim holds, does not hold, or is undecided because runs hit a limit."""

from __future__ import annotations

import math

import pytest

from benchmarks.bench import Bench
from benchmarks.claims import examine
from benchmarks.grid import Cell
from benchmarks.parts import Block, Claim, Columns
from benchmarks.verdict import Sample


def claim(samples, **said):
    rows = ["A", "B"]
    bench = Bench(
        title="",
        source="",
        seeds=1,
        report=1,
        columns=Columns(key="algorithm.k0", values=[1, 2, 3]),
        block=[Block(name="", rows=[{"name": row} for row in rows])],
    )
    found = {
        (Cell("", row, value), "rounds"): Sample((number, number))
        for row, numbers in zip(rows, samples, strict=True)
        for value, number in zip((1, 2, 3), numbers, strict=True)
    }
    return examine(bench, Claim(text="", measure="rounds", **said), found).text


@pytest.mark.parametrize(
    ("a", "b", "said", "text"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds"),
        ([1.0, 2.0, 5.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds in 2 of 3"),
        ([1.0, 2.0, 5.0], [math.inf] * 3, {"order": ["A", "B"]}, "holds"),
        ([1.0, 2.0, math.inf], [math.inf] * 3, {"order": ["A", "B"]}, "holds, 1 not decided"),
        ([1.0, math.inf, math.inf], [math.inf, 1.0, math.inf], {"order": ["A", "B"]}, "holds in 1 of 2, 1 not decided"),
        ([math.inf, 2.0, math.inf], [3.0, 2.0, 1.0], {"falls": ["A", "B"]}, "holds, 1 not decided"),
        ([math.inf] * 3, [math.inf] * 3, {"rises": ["A", "B"]}, "not decided: all runs hit a limit"),
        ([3.0, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A", "B"]}, "holds in 1 of 2"),
        ([math.inf, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A"]}, "holds"),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], {"rises": ["A"]}, "holds"),
        ([1.0, 1.1, 1.0], [1.0, 2.0, 1.0], {"flat": ["A", "B"]}, "holds in 1 of 2"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"equal": ["A", "B"], "within": 0.02}, "holds in 2 of 3"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"below": ["A", "B"], "bound": 1.0}, "holds in 4 of 6"),
        ([math.nan] * 3, [1.0] * 3, {"order": ["A", "B"]}, "not available"),
    ],
)
def test_claims(a, b, said, text):
    assert claim([a, b], **said) == text


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (Sample((100.0,) * 2, 2), Sample((100.0,) * 2, 2), "not decided: all runs hit a limit"),
        (Sample((100.0,) * 2, 2), Sample((90.0,) * 2), "does not hold"),
        (Sample((90.0,) * 2), Sample((100.0,) * 2, 2), "holds"),
    ],
)
def test_runs_that_ended_at_the_same_limit_decide_nothing(a, b, text):
    bench = Bench(title="", source="", seeds=1, report=1, block=[Block(name="", rows=[{"name": "A"}, {"name": "B"}])])
    found = {(Cell("", "A", None), "rounds"): a, (Cell("", "B", None), "rounds"): b}
    assert examine(bench, Claim(text="", measure="rounds", order=["A", "B"]), found).text == text
