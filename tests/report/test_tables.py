"""Numbers and tables in four formats, the page of a certificate, and the metrics of runs."""

import csv
import io
import math

import numpy as np
import pytest

import mpifed
from mpifed.report.certificate import format_certificate, format_factor, format_sides, measure_bound
from mpifed.report.metrics import available_metrics, latex_title, metric_title, metric_unit, select_metrics
from mpifed.report.tables import (
    WIDTH,
    Number,
    ReportTable,
    choose_unit,
    comma_separated,
    digits,
    escape_latex,
    format_cell,
    latex,
    markdown,
    terminal,
)
from mpifed.theory.statements import Bound, Certificate, Condition
from tests.helpers.compared_runs import BOLD, cells, compare, seeds
from tests.helpers.recorded_runs import recorded

NUMBERS = """1.23456 0.01234: 1.235 ± 0.012; 1234.5 56.7: 1234 ± 57; 12345.6 6789.0: 12346 ± 6789
0.0996 0.0996: 0.100 ± 0.100; 1.5e-8 2.5e-9: (1.50 ± 0.25)e-8; 1e-9 3e-8: (0.1 ± 3.0)e-8; 3.0 0.0: 3 ± 0
1.0 1e-12: 1.00000 ± 1e-12; 2.5 nan: 2.5; 123456 nan: 123456; 1234567.8 nan: 1.235e6; -0.00123456 nan: -0.001235
0.0 nan: 0; 0.0 0.0: 0 ± 0; 1e300 1e299: (1.00 ± 0.10)e300; nan 1.0: –; inf nan: inf; 1.0 inf: 1 ± inf"""


def test_the_deviation_decides_on_digits_but_a_mean_does_not_have_too_many():
    for line in NUMBERS.replace("\n", "; ").split("; "):
        numbers, told = line.split(": ")  # mean and deviation, as printed
        assert format_cell(Number(*map(float, numbers.split())), 1.0) == told
    assert digits(123.456789, 1e-9) == ("123.457", "1e-09", 0)


def test_what_diverged_has_a_mean_still_and_bytes_have_one_unit_in_a_column():
    assert cells(compare(seeds(1e200, 3e200), columns=["objective"]))[1] == [["FedGiA", "2", "(2.0 ± 1.4)e200"]]
    results = [recorded(k0=k, columns={"bytes_up": (0, 0, size)}) for k, size in ((1, 500), (2, 2_500_000))]
    head, rows = cells(compare(results, columns=["bytes_up"]))
    assert head[-1] == "up (MB)"
    assert [row[-1] for row in rows] == ["0.0005", "2.5"]


TABLE = ReportTable(
    [("method", "method"), ("‖∇f‖²", r"$\|\nabla f\|^2$")],
    ["method", "grad_norm_sq"],
    [["a_b|c*", Number(1.5e-8, 2.5e-9, True)], ["50% $x$ & #1 {~^\\}", Number(2.0)]],
    [1.0, 1.0],
)


def test_a_terminal_has_columns_in_line_and_markdown_and_latex_escape_what_they_would_obey():
    text = terminal(TABLE)
    assert text == (
        "method                         ‖∇f‖²\n"
        "a_b|c*              (1.50 ± 0.25)e-8\n"
        "50% $x$ & #1 {~^\\}                 2"
    )
    assert terminal(TABLE, bold=True).replace(BOLD, "").replace("\033[0m", "") == text
    assert markdown(TABLE).split("\n") == [
        "| method | ‖∇f‖² |",
        "| :-- | --: |",
        r"| a\_b\|c\* | **(1.50 ± 0.25)e-8** |",
        r"| 50% $x$ & #1 {~^\\} | 2 |",
    ]
    text = latex(TABLE)
    assert text.split("\n") == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"method & $\|\nabla f\|^2$ \\",
        r"\midrule",
        r"a\_b\textbar{}c* & {\boldmath$(1.50 \pm 0.25) \times 10^{-8}$} \\",
        r"50\% \$x\$ \& \#1 \{\textasciitilde{}\textasciicircum{}\textbackslash{}\} & $2$ \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    for sign in "&%$#_{}~^\\":
        assert escape_latex(sign) != sign


def test_csv_is_read_back_as_it_was_under_names_that_are_unique():
    results = [*seeds(1.0, 2.5), recorded(k0=10, objective=(8.0, 1 / 3), config={"data": {"path": 'a,"b"'}})]
    rows = list(csv.DictReader(io.StringIO(compare(results, format="csv"))))
    first = {"algorithm.k0": "5", "n": "2", "objective": "1.75", "bytes_up": "2000"}
    second = {"algorithm.k0": "10", "n": "1", "data.path": 'a,"b"', "objective": repr(1 / 3), "objective_sd": ""}
    assert all(wanted.items() <= row.items() for wanted, row in zip((first, second), rows, strict=True))
    assert float(rows[0]["objective_sd"]) == np.std([1.0, 2.5], ddof=1)
    assert {"tct_seconds", "lct_seconds", "rounds", "rounds_sd"} <= set(rows[0])
    table = ReportTable([("a", "a")], ["a"], [["x"]], [1.0])
    assert comma_separated(table) == "a\nx"
    results = [recorded(config={"rounds": rounds}) for rounds in (100, 200)]
    names = compare(results, format="csv").split("\n")[0].split(",")
    assert len(names) == len(set(names))


def test_bytes_have_the_unit_of_the_largest_and_other_units_stay():
    limits = {0: (1, "B"), 999.9: (1, "B"), 999.95: (1e3, "kB"), 999_949: (1e3, "kB"), 999_950: (1e6, "MB")}
    limits |= dict.fromkeys((1e15, 1e21), (1e15, "PB"))
    assert {largest: choose_unit("byte", largest) for largest in limits} == limits
    assert choose_unit("s", 1e9) == (1, "s")
    assert choose_unit("1", 1e9) == (1, "")


def test_a_title_is_the_symbol_or_the_name_and_the_unit_which_an_algorithm_may_declare():
    titles = {("grad_norm_sq",): "‖∇f‖²", ("tct", "s"): "TCT (s)", ("inner_steps",): "inner steps"}
    titles |= {("lap_seconds", "s"): "lap (s)"}
    assert {words: metric_title(*words) for words in titles} == titles
    titles = {("epsilon",): r"named $\varepsilon$ $\times$ uploads", ("my_column",): "my column"}
    titles |= {("bytes", "kB"): "up + down (kB)"}
    assert {words: latex_title(*words) for words in titles} == titles
    run = recorded(columns={"lap": (1.0, 2.0, 3.0)})
    run.about["lap"] = ("m", "Way.")
    assert metric_unit("lap", [run]) == "m"
    assert metric_unit("lap") == "1"
    assert "lap" in available_metrics([run])


def test_requested_metrics_are_those_named_or_the_usual_ones_that_a_run_has():
    run = recorded()
    assert select_metrics([run], ["tct", "objective"]) == ["tct", "objective"]
    assert "accuracy" not in select_metrics([run], None)


def test_a_condition_that_fails_is_written_as_it_is_and_a_factor_close_to_1_is_not_rounded():
    given = [(0.3, ">=", 0.2), (0.1, ">=", 0.2), (0.2, "<", 0.2), (2, "=", 1), (math.nan, ">", 1)]
    told = ["0.3 >= 0.2", "0.1 < 0.2", "0.2 >= 0.2", "2 ≠ 1", "? > 1"]
    assert [format_sides(Condition.of("", *parts, "")) for parts in given] == told
    assert list(map(format_factor, (0.5, 1 - 1e-7, 1.0, math.nan))) == ["0.5", "1 − 1e-07", "1", "not known"]


def test_lines_fit_the_screen():
    conditions = [Condition.of("a condition with a name of some length", 1.0, ">", 2.0, "a source " * 12)]
    bounds = [Bound("what is bounded", "a formula " * 14, 0.5, "Theorem 1", "factor", "objective_gap")]
    text = format_certificate("fedgia", Certificate("Theorem 1", conditions, bounds, ["a remark " * 30]), 10)
    brief = mpifed.run({"algorithm": {"name": "fedprox", "certify": True}, "data": "gaussian"}, rounds=1).summary()
    assert max(map(len, [*text.splitlines(), *brief.splitlines()])) <= WIDTH
    assert "0 of 1 hold, 1 do not" in text
    assert "after R = 10 rounds" in text


def test_what_a_run_had_stands_beside_the_bound():
    study = {"data": "quadratic", "data.clients": 4, "rounds": 60, "algorithm": "feddcd", "algorithm.certify": True}
    result = mpifed.run(study, {"algorithm.dual": True})
    certificate = result.certificate
    value, how = measure_bound(certificate.bounds[0], certificate, result)
    gaps = result.rounds["dual_objective"] + 4 * certificate.constants.f
    assert "G − G*" in how
    assert value == pytest.approx((gaps[40] / gaps[20]) ** (1 / 20), rel=0.1)
    assert measure_bound(certificate.bounds[1], certificate, result) is None, "it is about no recorded column"
    text = format_certificate("feddcd", certificate, 60, result)
    assert f"in this run: {float(f'{value:.4g}'):g}, factor per round of G − G*" in " ".join(text.split())
