"""Runs in a table: its columns, what is best, and which runs count."""

import io
import re

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report.metrics import final_metric
from mpifed.report.settings import natural_sort_key
from tests.helpers.commands import mpifed
from tests.helpers.compared_runs import BOLD, cells, compare, seeds
from tests.helpers.recorded_runs import recorded


def test_a_file_that_is_named_twice_counts_once_and_usual_columns_come_with_units(tmp_path):
    recorded(tmp_path / "a.h5")
    done = mpifed("compare", "a.h5", "./a.h5", "--columns", "rounds", cwd=tmp_path)
    assert cells(done.out) == (["algorithm", "CR"], [["FedGiA", "2"]])
    head, _ = cells(compare(seeds(1.0)))
    assert head == ["algorithm", "objective", "‖∇f‖²", "CR", "exchanges", "up (kB)", "TCT (s)", "LCT (s)"]
    with_accuracy = recorded(columns={"accuracy": (0.1, 0.5, 0.9), "snr": (1.0, 2.0, 3.0)})
    assert cells(compare([with_accuracy]))[0][-2:] == ["SNR", "accuracy"]


def test_the_last_value_of_a_column_counts_and_times_of_rounds_are_summed():
    result = recorded(
        objective=(8.0, 4.0, float("nan")),
        columns={"inner_steps": (0, 3, 4), "late": (0, 1, 2), "epsilon": (0.0, 1.0, 2.0)}
        | {"staleness": (0.0, 1.0, 2.0), "staleness_max": (0, 4, 3)},
    )
    assert final_metric(result, "objective") == 4.0  # the last that was measured
    assert [final_metric(result, name) for name in ("rounds", "tct", "lct")] == [2, 2.0, 0.25]
    sums = {"late": 3, "epsilon": 2, "bytes": 8000, "bytes_up": 2000, "inner_steps": 4, "client_seconds": 1.5}
    sums |= {"staleness": 1.5, "staleness_max": 4}  # ages have a mean and a largest one, and no sum
    assert {name: final_metric(result, name) for name in sums} == sums
    assert np.isnan(final_metric(result, "accuracy"))


def test_an_unknown_column_is_refused_with_the_nearest():
    for options in ({"columns": ["objectiv"]}, {"sort": "objectiv"}):
        with pytest.raises(UserError, match="unknown column 'objectiv'; did you mean 'objective'"):
            compare(seeds(1.0), **options)
    with pytest.raises(UserError, match="unknown format 'html'; the choices are terminal, markdown, latex, csv"):
        compare(seeds(1.0), format="html")


def test_rows_are_sorted_by_a_setting_or_best_first():
    good = recorded(k0=20, objective=(8.0, 1.0), columns={"accuracy": (0.1, 0.9)})
    bad = recorded(k0=3, objective=(8.0, 2.0), columns={"accuracy": (0.1, 0.3)})

    def order(sort):
        return [row[1] for row in cells(compare([bad, good], columns=["objective", "accuracy"], sort=sort))[1]]

    assert order("k0") == order("algorithm.k0") == order(None) == ["3", "20"]
    assert order("objective") == order("accuracy") == ["20", "3"]
    assert sorted(["b", "10", "9", "1e3"], key=natural_sort_key) == ["9", "10", "1e3", "b"]


def test_the_lowest_objective_and_the_highest_accuracy_are_bold_but_not_numbers_that_look_the_same():
    low = recorded(k0=5, objective=(8.0, 1.0), columns={"accuracy": (0.1, 0.3), "snr": (1.0, 1.0)})
    high = recorded(k0=10, objective=(8.0, 2.0), columns={"accuracy": (0.1, 0.9), "snr": (1.0, 2.0)})
    text = compare([low, high], columns=["objective", "accuracy", "snr", "rounds"], format="markdown")
    assert text.split("\n")[2:] == ["| FedGiA | 5 | **1** | 0.3 | 1 | 1 |", "| FedGiA | 10 | 2 | **0.9** | 2 | 1 |"]
    results = [recorded(k0=k, objective=(8.0, end)) for k, end in ((1, 1.00001), (2, 1.00002), (3, 2.0))]
    text = compare(results, columns=["objective"], bold=True)
    assert BOLD not in text
    assert text.split("\n")[-1] == "tie for the best, so not bold: objective (2 rows)"
    assert "tie" not in compare(results, columns=["objective"])  # nothing is bold in a pipe
    for same in (compare(results, columns=["rounds"], bold=True), compare(results[:1], bold=True)):
        assert BOLD not in same
        assert "tie" not in same
    pairs = [(k, m) for k in (1, 2) for m in (10, 20)]  # runs on other data do not compete
    results = [recorded(k0=k, objective=(8.0, k * m), config={"data": {"clients": m}}) for k, m in pairs]
    text = compare(results, columns=["objective"], format="markdown")
    assert [line.endswith("** |") for line in text.split("\n")[2:]] == [True, True, False, False]


def test_a_lead_that_the_seeds_explain_is_a_tie():
    def text(*second):
        return compare([*seeds(1.0, 2.0, 3.0, k0=1), *seeds(*second, k0=2)], columns=["objective"], format="markdown")

    assert "**" not in text(1.1, 1.8, 3.3)
    assert "tie for the best, so not bold: objective (2 rows)" in text(1.1, 1.8, 3.3)
    ahead = text(1.1, 2.1, 3.11)  # by 0.1 with every seed, far less than the seeds differ among themselves
    assert ahead.split("\n")[2].endswith("**2.0 ± 1.0** |")
    assert "tie" not in ahead


def test_the_error_is_above_the_best_of_the_same_seed_over_the_seeds_that_all_rows_have():
    results = [*seeds(1.0, 2.0, k0=1), *seeds(2.0, 3.5, k0=2)]
    head, rows = cells(compare(results, columns=["error"]))
    assert head[-1] == "f − least f found"
    assert [row[-1] for row in rows] == ["0 ± 0", "1.25 ± 0.35"]
    known = [recorded(k0=k, columns={"objective_gap": (3.0, 2.0, k)}) for k in (1, 2)]
    rows = [["FedGiA", "1", "1"], ["FedGiA", "2", "2"]]
    assert cells(compare(known, columns=["error"])) == (["algorithm", "k₀", "f − f*"], rows)
    results = [*seeds(3.0, 2.0, 1.0, k0=1), *seeds(2.0, 3.5, k0=2)]
    text = compare(results, columns=["error"])
    assert [row[-1] for row in cells(text.rpartition("\n\n")[0])[1]] == ["0.50 ± 0.71", "0.8 ± 1.1"]
    assert text.endswith("\nerror: without 1 run on data that other rows lack")

    def heads(*first, slopes=(1.0, 1.0)):
        own = [{"objective": (f, f), "grad_norm_sq": (g, 0.1)} for f, g in zip(first, slopes, strict=True)]
        runs = [recorded(k0=k, seed=s, objective=(1, 1), columns=own[s]) for k in (1, 2) for s in (0, 1)]
        return cells(compare(runs))[0]

    assert heads(8.0, 9.0)[3:5] == ["objective", "f − least f found"]
    assert "f − least f found" not in heads(8.0, 8.0)
    assert heads(np.inf, np.inf, slopes=(1.0, 2.0))[3] == "‖∇f‖²", "no objective is finite"


def test_names_are_as_in_print_or_as_the_user_says_and_raw_in_csv():
    results = [recorded(k0=k, objective=(8.0, k)) for k in (1, 2)]
    again = ["fedgia=ours", "k0=steps", "objective=f"]
    assert cells(compare(results, columns=["objective"], rename=again))[0] == ["algorithm", "steps", "f"]
    assert "| ours | 1 | **1** |" in compare(results, columns=["objective"], rename=again, format="markdown")
    assert "algorithm & $k_{0}$ & objective" in compare(results, columns=["objective"], format="latex")
    head, first, *_ = compare(results, columns=["objective"], format="csv").split("\n")
    assert (head, first[:9]) == ("algorithm,algorithm.k0,n,objective,objective_sd", "fedgia,1,")
    assert compare(results, columns=["objective"], sort="k₀") == compare(results, columns=["objective"], sort="k0")


def test_latex_of_runs_has_cells_and_braces_that_match_and_pandas_reads_the_csv():
    results = [*seeds(1.0, 2.0), *seeds(1.0, 2.0, name="fedadmm", k0=7)]
    lines = compare([*results, recorded(columns={"accuracy": (0, 0, 1)}, k0=9)], format="latex").split("\n")
    body = [line for line in lines if line.endswith(r"\\")]
    (wide,) = (len(found.group(1)) for line in lines if (found := re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", line)))
    assert {len(re.split(r"(?<!\\)&", line)) for line in body} == {wide}
    for line in lines:
        assert line.count("{") == line.count("}")
        assert line.count("$") % 2 == 0
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(compare([*seeds(1.0, 2.0), *seeds(3.0, k0=9)], format="csv")))
    assert frame["objective"].tolist() == [1.5, 3.0]
    assert frame["rounds"].dtype.kind == "i"


def test_rows_of_other_numbers_of_rounds_are_said_to_be_so():
    def notes(results, **options):
        return compare(results, **options).partition("\n\n")[2]

    def method(name, rounds, **options):
        return recorded(name=name, objective=(8.0,) * (rounds + 1), config={"rounds": rounds, **options})

    both = [method("fedgia", 2), method("scaffold", 4)]
    assert notes(both) == "rows differ in rounds: 2 (FedGiA), 4 (SCAFFOLD)"
    assert notes([*both, method("fedavg", 4)]) == "rows differ in rounds: 4 (2 rows), 2 (FedGiA)"
    assert not notes([method("fedgia", 2), method("scaffold", 2)])
    assert not notes([method("fedgia", 2), method("fedgia", 4)]), "the column of the setting shows it"
    stops = [method(name, 2, stop={"accuracy": bound}) for name, bound in (("fedgia", 0.5), ("scaffold", 0.9))]
    assert notes(stops) == "rows differ in stop.accuracy: 0.5 (FedGiA), 0.9 (SCAFFOLD)"
    ended = [recorded(objective=(8.0, 1.0)), recorded(seed=1, objective=(8.0, 4.0, 1.0))]
    assert not notes(ended), "the column CR shows it"
    told = "runs of 1 to 2 rounds: the column rounds shows how many each row has"
    assert notes(ended, columns=["objective"]) == told


def test_a_run_that_did_not_finish_is_named_and_left_out_unless_all_are_asked_for(tmp_path):
    results = [
        *seeds(1.0, 3.0),
        recorded(tmp_path / "died.h5", seed=2, objective=(8.0,), status="running"),
        recorded(k0=10, status="failed", objective=(8.0, 9.0)),
    ]
    text = compare(results, columns=["objective"])
    head, rows = cells(text)
    assert head == ["algorithm", "k₀", "n", "status", "objective"]
    assert rows == [["FedGiA", "5", "2", "2 finished, 1 running", "2.0 ± 1.4"], ["FedGiA", "10", "0", "failed", "–"]]
    left = [f"left out: {tmp_path}/died.h5 (running, 0 rounds)", "left out: a result (failed, 1 round)"]
    assert text.split("\n")[-2:] == left
    assert compare(results, columns=["objective"], format="latex").startswith("% left out: ")
    assert "left out" not in compare(results, format="csv")
    results = [*seeds(1.0, 3.0), recorded(seed=2, objective=(8.0,), status="stopped")]
    text = compare(results, columns=["objective", "rounds"], everything=True)
    assert cells(text)[1] == [["FedGiA", "3", "2 finished, 1 stopped", "4.0 ± 3.6", "1.3 ± 1.2"]]
    assert "left out" not in text
