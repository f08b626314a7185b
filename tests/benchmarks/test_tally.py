"""The counts at the top of the report, and what is off or open with its reason."""

import pytest

from benchmarks import bench as benches
from benchmarks.claims import examine
from benchmarks.grid import Cell, runs
from benchmarks.outcome import Outcome
from benchmarks.rows import Rows
from benchmarks.tables import figure, middle, tables
from benchmarks.tally import UNEXPLAINED, counted, remaining, said, tally
from benchmarks.verdict import Sample
from mpifed import UserError

OURS = {"FedGiA": [(5, 5, 5), (6, 6, 6)], "FedAvg": [(30, 31, 32), (6, 6, 6)]}


@pytest.fixture
def outcome(tiny):
    """A function: the outcome of the benchmark with these rounds of three seeds at k0 = 1 and 5, its file changed."""
    text = tiny.read_text()

    def made(old="", new="", **rounds):
        tiny.write_text(text.replace(old, new, 1) if old else text)
        bench = benches.read("fedgia/tiny")
        cells = dict.fromkeys(run.cell for run in runs(bench, 3))
        samples = {(cell, measure): Sample((), 0, "no data") for cell in cells for measure in bench.measures}
        for row, columns in (OURS | rounds).items():
            for value, values in zip((1, 5), columns, strict=True):
                samples[Cell("Example V.1", row, value), "rounds"] = Sample(tuple(map(float, values)))
        findings = [examine(bench, claim, samples) for claim in bench.claim]
        return Outcome("fedgia/tiny", bench, Rows(3, [], []), {}, samples, findings, None)

    return made


def test_cells_and_claims_are_counted(outcome):
    found = tally(outcome())
    assert (found.cells, found.claims) == ({"agrees": 1, "off": 2, "seconds": 2}, {"tie": 1})
    table = counted([found, found._replace(name="fedgia/other")])
    head, _, first, _, total, _, seconds = table.splitlines()
    cells = "cells agree | in sample | cannot tell apart | off | open | on other data | not available"
    assert head == f"| benchmark | seeds | {cells} | claims hold | tie | fail | not decided | on other data |"
    assert first == "| fedgia/tiny | 3 | 1 |  |  | 2 |  |  |  |  | 1 |  |  |  |"
    assert total == "| all |  | 2 |  |  | 4 |  |  |  |  | 2 |  |  |  |"
    assert seconds.startswith("4 more cells are seconds")


def test_what_is_off_has_a_reason_perhaps_for_one_measure_or_says_that_it_has_none(outcome):
    text = remaining([tally(outcome())])
    assert text.startswith("3 rows and claims are off, open or ties; 1 of them have no reason.")
    assert f"- Example V.1, FedGiA, CR: off (k₀ = 5: +50 %): {UNEXPLAINED}" in text
    assert "- Example V.1, FedAvg, CR: off (k₀ = 1: reached with 3 of 3 seeds): it is a test" in text
    assert "- “FedGiA takes fewer rounds”, page 1, holds in 1 of 2 cases, 1 tie" in text
    failing = [(4, 4, 4), (2, 2, 2)]  # a claim that fails needs a reason too
    assert f"does not hold in either case: {UNEXPLAINED}" in remaining([tally(outcome(FedAvg=failing))])
    good = outcome('measure = "rounds"', 'measure = "rounds"\nwhy = "FedAvg is good"', FedAvg=failing)
    assert "does not hold in either case: FedAvg is good" in remaining([tally(good)])
    why = 'why = { FedAvg = "it is a test" }'
    assert "3 of 3 seeds): few" in remaining([tally(outcome(why, 'why.FedAvg = { rounds = "few", tct = "busy" }'))])
    with pytest.raises(UserError, match=r"explains unknown rows or measures: .*'round'"):
        outcome(why, 'why.FedAvg.round = "few"')


def test_cells_fitted_to_their_number_or_that_agree_with_another_row_as_well_are_counted_apart(outcome):
    why = 'why = { FedAvg = "it is a test" }'
    found = outcome(why, f'{why}\nfitted.FedGiA.rounds = "t, one of three"')
    assert tally(found).cells == {"in sample": 1, "off": 2, "seconds": 2}  # what is off stays off
    table = tables(found, found.bench.block[0])[0]
    assert table.rows[0][1] == "5.0 ± 0.0 [5.0] ° +0.0 %"
    assert "FedGiA: fitted: t, one of three" in table.notes
    assert "FedGiA, CR: in sample (k₀ = 1: +0.0 %): t, one of three" in remaining([tally(found)])
    paper = "FedAvg = { rounds = ["
    close = outcome(f'{paper}"> 40", ""]', f"{paper}5.4, 3.0]")
    assert tally(close).cells == {"cannot tell the methods apart": 1, "off": 3, "seconds": 2}
    assert "5.0 ± 0.0 [5.0] ≟ +0.0 %" in tables(close, close.bench.block[0])[0].rows[0][1]
    assert middle(Sample((1.5, float("nan"), 2.5, 3.5))) == "2.500, half in 1.500 to 3.500"  # one run failed
    assert [figure(9.999e-4), figure(9.9912e-4), figure(3e-5, 9.996e-4)] == ["1.00e-3", "9.99e-4", "0.03e-3"]


def test_other_data_are_marked_and_not_judged(outcome):
    found = outcome("optimum = true", 'optimum = true\nsurrogate = "6 clients in place of 128"')
    assert (tally(found).cells, tally(found).claims) == ({"on other data": 3, "seconds": 2}, {"on other data": 1})
    assert found.summary() == "cells: 3 on other data, 2 in seconds (different machines); claims: 1 on other data"
    assert tally(found).unsettled == []
    assert said(found)[0].startswith("† “FedGiA takes fewer rounds”, page 1, holds in 1 of 2 cases, 1 tie")
    table = tables(found, found.bench.block[0])[0]
    assert table.rows[0] == ["FedGiA", "5.0 ± 0.0 [5.0] †", "6.0 ± 0.0 [4.0] †"]
    assert table.notes == ["† on other data than the paper's: 6 clients in place of 128"]
    # unless an independent implementation has numbers on the same data
    extra = 'surrogate = "6 clients"\nreference_trials = 20\nreference.FedGiA = { rounds = [5.0, 4.0] }'
    judged = outcome("optimum = true", f"optimum = true\n{extra}")
    assert tally(judged).cells == {"agrees": 1, "off": 1, "on other data": 1, "seconds": 2}
