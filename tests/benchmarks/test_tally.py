"""The counts at the top of the report, and what is off or open with its reason."""

from __future__ import annotations

import pytest

from benchmarks import bench as benches
from benchmarks.claims import examine
from benchmarks.grid import Cell, runs
from benchmarks.outcome import Outcome
from benchmarks.report import behind
from benchmarks.sentences import said
from benchmarks.tables import tables
from benchmarks.tally import UNEXPLAINED, counted, remaining, tally
from benchmarks.verdict import Sample
from mpifed import UserError
from tests.benchmarks.tiny import TINY

SHARE = 'columns = { key = "algorithm.k0"'


def outcome(folder, text, **rounds):
    """The outcome of the tiny benchmark with these rounds of three seeds at k0 = 1 and 5."""
    (folder / "benchmarks" / "fedgia" / "tiny.toml").write_text(text)
    bench = benches.read("fedgia/tiny")
    cells = dict.fromkeys(run.cell for run in runs(bench, 3))
    samples = {(cell, measure): Sample((), 0, "no data") for cell in cells for measure in bench.measures}
    for row, columns in rounds.items():
        for value, values in zip((1, 5), columns, strict=True):
            samples[Cell("Example V.1", row, value), "rounds"] = Sample(tuple(map(float, values)))
    findings = [examine(bench, claim, samples) for claim in bench.claim]
    return Outcome(
        "fedgia/tiny",
        bench,
        3,
        {cell: [] for cell in cells},
        samples,
        findings,
        dict.fromkeys(cells, "x-seed-*.h5"),
        None,
    )


OURS = {"FedGiA": [(5, 5, 5), (6, 6, 6)], "FedAvg": [(30, 31, 32), (6, 6, 6)]}


def test_cells_and_claims_are_counted(tiny):
    found = tally(outcome(tiny, TINY, **OURS))
    assert found.cells == {"agrees": 1, "off": 2, "seconds": 2}
    assert found.claims == {"tie": 1}
    table = counted([found, found._replace(name="fedgia/other")], lambda name: f"<{name}>")
    head, _, first, _, total, _, seconds = table.splitlines()
    assert head == (
        "| benchmark | seeds | cells agree | off | open | on other data | not available "
        "| claims hold | tie | fail | not decided | on other data |"
    )
    assert first == "| <fedgia/tiny> | 3 | 1 | 2 |  |  |  |  | 1 |  |  |  |"
    assert total == "| all |  | 2 | 4 |  |  |  |  | 2 |  |  |  |"
    assert seconds.startswith("4 more cells are seconds")


def test_what_is_off_has_a_reason_or_says_that_it_has_none(tiny):
    text = remaining([tally(outcome(tiny, TINY, **OURS))])
    assert text.startswith("3 rows and claims are off, open or ties; 1 of them have no reason.")
    assert f"- Example V.1, FedGiA, CR: off (k₀ = 5: +50 %): {UNEXPLAINED}" in text
    assert "- Example V.1, FedAvg, CR: off (k₀ = 1: reached with 3 of 3 seeds): it is a test" in text
    assert "- “FedGiA takes fewer rounds”, page 1, holds in 1 of 2 cases, 1 tie" in text


def test_a_claim_that_fails_needs_a_reason_too(tiny):
    ours = {**OURS, "FedAvg": [(4, 4, 4), (2, 2, 2)]}
    assert f"does not hold in either case: {UNEXPLAINED}" in remaining([tally(outcome(tiny, TINY, **ours))])
    text = TINY.replace('measure = "rounds"', 'measure = "rounds"\nwhy = "FedAvg is good"', 1)
    assert "does not hold in either case: FedAvg is good" in remaining([tally(outcome(tiny, text, **ours))])


def test_a_reason_may_belong_to_one_measure(tiny):
    text = TINY.replace('why = { FedAvg = "it is a test" }', 'why.FedAvg = { rounds = "few", tct = "busy" }')
    assert "3 of 3 seeds): few" in remaining([tally(outcome(tiny, text, **OURS))])
    with pytest.raises(UserError, match=r"explains unknown rows or measures: .*'round'"):
        outcome(tiny, text.replace('rounds = "few"', 'round = "few"'))


def test_other_data_are_marked_and_not_judged(tiny):
    text = TINY.replace("optimum = true", 'optimum = true\nsurrogate = "6 clients in place of 128"')
    found = outcome(tiny, text, **OURS)
    assert tally(found).cells == {"on other data": 3, "seconds": 2}
    assert tally(found).claims == {"on other data": 1}
    assert found.summary() == "cells: 3 on other data, 2 in seconds (different machines); claims: 1 on other data"
    assert tally(found).unsettled == []
    assert said(found)[0].startswith("† “FedGiA takes fewer rounds”, page 1, holds in 1 of 2 cases, 1 tie")
    table = tables(found, found.bench.block[0])[0]
    assert table.head == ["CR", "k₀ = 1 †", "k₀ = 5 †"]
    assert table.rows[0] == ["FedGiA", "5.0 ± 0.0 [5.0] †", "6.0 ± 0.0 [4.0] †"]
    assert table.notes == ["† on other data than the paper's: 6 clients in place of 128"]
    assert "Example V.1 †, k₀ = 5" in [case.name for case in found.findings[0].ties]


def test_an_independent_implementation_on_the_same_data_is_judged(tiny):
    extra = 'surrogate = "6 clients"\nreference_trials = 20\nreference.FedGiA = { rounds = [5.0, 4.0] }'
    found = outcome(tiny, TINY.replace("optimum = true", f"optimum = true\n{extra}"), **OURS)
    assert tally(found).cells == {"agrees": 1, "off": 1, "on other data": 1, "seconds": 2}


def test_medians_are_told_as_medians(tiny):
    text = TINY.replace("optimum = true", 'optimum = true\ncenter = "median"')
    table = tables(found := outcome(tiny, text, FedGiA=[range(20, 71), (6,) * 51]), found.bench.block[0])[0]
    assert table.rows[0][1].startswith("45.0, half in 32.0 to 58.0 [5.0] ✗")
    assert "the numbers are medians, with the range of the middle half" in table.notes


def test_the_report_says_how_many_runs_are_behind_a_number(tiny):
    assert behind(outcome(tiny, TINY, **OURS)) == "our numbers: 3 seeds; the paper's: 20 runs"
    text = TINY.replace("trials = 20\n", "")
    assert behind(outcome(tiny, text, **OURS)) == "our numbers: 3 seeds; the paper's: 1 run (assumed, not printed)"


def test_seeds_of_blocks_are_told(tiny):
    assert tally(outcome(tiny, TINY, **OURS)).seeds == "3"
    assert tally(outcome(tiny, TINY.replace("optimum = true", "optimum = true\nseeds = 50"), **OURS)).seeds == "3 to 50"
