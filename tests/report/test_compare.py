"""Runs in a table: which form a row, what leads it, how numbers are told, and in which of four formats."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report import compare as module
from mpifed.report.groups import natural, study
from mpifed.report.metrics import final
from mpifed.report.tables import Number, Table, comma_separated, digits, escaped, latex, markdown, plain, terminal
from tests.helpers.commands import ROOT, mpifed
from tests.helpers.recorded_runs import recorded

BOLD = "\033[1m"


def compare(results, **options):
    return module.compare(results, module.Layout(**options))


def seeds(*ends, **options):
    """A run a seed, which end at these objectives."""
    return [recorded(seed=seed, objective=(8.0, 4.0, end), **options) for seed, end in enumerate(ends)]


def cells(text):
    """Heads and rows of a table for a terminal."""
    head, *rows = [
        re.split(r"  +", line.strip()) for line in text.split("\n") if line and not line.startswith("left out")
    ]
    return head, rows


# ---------------------------------------------------------------- rows


def test_runs_that_differ_only_in_the_seed_are_a_row_with_mean_and_deviation():
    head, [row] = cells(compare(seeds(1.0, 2.0, 3.0), columns=["objective"]))
    assert head == ["algorithm", "n", "objective"]
    assert row == ["fedgia", "3", "2.0 ± 1.0"]  # of a sample: ((1 + 0 + 1) / 2) ** ½


def test_one_run_has_no_deviation_and_no_n():
    assert cells(compare(seeds(1.25), columns=["objective"])) == (["algorithm", "objective"], [["fedgia", "1.25"]])


def test_only_settings_that_differ_lead_a_row_under_short_names():
    head, rows = cells(compare([*seeds(1.0, k0=5), *seeds(2.0, k0=10)], columns=["objective"]))
    assert head == ["algorithm", "k0", "objective"]
    assert rows == [["fedgia", "5", "1"], ["fedgia", "10", "2"]]  # 5 before 10: by number


def test_options_of_other_algorithms_are_no_difference():
    made = study([*seeds(1.0), *seeds(1.0, name="fedadmm", nu=0.9, inner_max=3)])
    assert list(made.keys) == ["algorithm"]
    assert list(study([*seeds(1.0), *seeds(1.0, H="gram")]).keys) == ["algorithm", "algorithm.H"]


def test_a_table_that_some_have_is_one_difference():
    system = {"system": {"speed": 1e4, "latency": 0.1}}
    assert list(study([*seeds(1.0), *seeds(1.0, config=system)]).keys) == ["algorithm", "system"]


def test_keys_of_the_same_name_are_told_whole():
    results = [recorded(config={"data": {"share": share}, "selection": {"share": share}}) for share in (0.1, 0.2)]
    assert list(study(results).keys.values()) == ["algorithm", "data.share", "selection.share"]
    longer = [recorded(config={"rounds": rounds}) for rounds in (100, 200)]
    assert cells(compare(longer, columns=["rounds"]))[0] == ["algorithm", "rounds (setting)", "CR"]


def test_ranks_are_a_setting_and_checkpoints_are_none():
    results = [recorded(ranks=2), recorded(ranks=4), recorded(ranks=4, config={"checkpoint": {"every_seconds": 1.0}})]
    made = study(results)
    assert list(made.keys) == ["algorithm", "ranks"]
    assert [len(group.runs) for group in made.groups] == [1, 2]


def test_means_are_taken_over_other_settings_too_or_none():
    results = [*seeds(1.0, 3.0, k0=5), *seeds(5.0, 7.0, k0=10)]
    assert cells(compare(results, by=["seed", "algorithm.k0"], columns=["objective"]))[1] == [
        ["fedgia", "4", "4.0 ± 2.6"]
    ]
    head, rows = cells(compare(results, by=[], columns=["objective"]))
    assert (head, len(rows)) == (["algorithm", "k0", "seed", "objective"], 4)
    with pytest.raises(UserError, match=r"unknown setting 'algorithm\.k1'; did you mean 'algorithm\.k0'"):
        compare(results, by=["algorithm.k1"])


def test_a_file_that_is_named_twice_counts_once(tmp_path):
    recorded(tmp_path / "a.h5")
    done = mpifed("compare", "a.h5", "./a.h5", "--columns", "rounds", cwd=tmp_path)
    assert cells(done.out) == (["algorithm", "CR"], [["fedgia", "2"]])


# ---------------------------------------------------------------- columns


def test_usual_columns_come_with_units():
    head, _ = cells(compare(seeds(1.0)))
    assert head == ["algorithm", "objective", "‖∇f‖²", "CR", "exchanges", "up (kB)", "TCT (s)", "LCT (s)"]
    with_accuracy = recorded(columns={"accuracy": (0.1, 0.5, 0.9), "snr": (1.0, 2.0, 3.0)})
    assert cells(compare([with_accuracy]))[0][-2:] == ["SNR", "accuracy"]


def test_a_column_tells_how_it_came_out_and_times_of_rounds_are_summed():
    result = recorded(objective=(8.0, 4.0, float("nan")), columns={"inner_steps": (0, 3, 4)})
    assert final(result, "objective") == 4.0  # the last that was measured
    assert [final(result, name) for name in ("rounds", "tct", "lct")] == [2, 2.0, 0.25]
    assert [final(result, name) for name in ("bytes", "bytes_up", "inner_steps", "client_seconds")] == [
        8000,
        2000,
        7,
        1.5,
    ]
    assert np.isnan(final(result, "accuracy"))


def test_an_unknown_column_is_refused_with_the_nearest():
    for options in ({"columns": ["objectiv"]}, {"sort": "objectiv"}):
        with pytest.raises(UserError, match="unknown column 'objectiv'; did you mean 'objective'"):
            compare(seeds(1.0), **options)
    with pytest.raises(UserError, match="unknown format 'html'; the choices are terminal, markdown, latex, csv"):
        compare(seeds(1.0), form="html")


def test_rows_are_sorted_by_a_setting_or_best_first():
    good = recorded(k0=20, objective=(8.0, 1.0), columns={"accuracy": (0.1, 0.9)})
    bad = recorded(k0=3, objective=(8.0, 2.0), columns={"accuracy": (0.1, 0.3)})

    def order(sort):
        return [row[1] for row in cells(compare([bad, good], columns=["objective", "accuracy"], sort=sort))[1]]

    assert order("k0") == order("algorithm.k0") == order(None) == ["3", "20"]
    assert order("objective") == order("accuracy") == ["20", "3"]
    assert sorted(["b", "10", "9", "1e3"], key=natural) == ["9", "10", "1e3", "b"]


# ---------------------------------------------------------------- the best


def test_the_lowest_objective_and_the_highest_accuracy_are_bold():
    low = recorded(k0=5, objective=(8.0, 1.0), columns={"accuracy": (0.1, 0.3), "snr": (1.0, 1.0)})
    high = recorded(k0=10, objective=(8.0, 2.0), columns={"accuracy": (0.1, 0.9), "snr": (1.0, 2.0)})
    text = compare([low, high], columns=["objective", "accuracy", "snr", "rounds"], form="markdown")
    assert text.split("\n")[2:] == ["| fedgia | 5 | **1** | 0.3 | 1 | 1 |", "| fedgia | 10 | 2 | **0.9** | 2 | 1 |"]


def test_ties_are_bold_together_also_of_numbers_that_look_the_same():
    results = [recorded(k0=k, objective=(8.0, end)) for k, end in ((1, 1.00001), (2, 1.00002), (3, 2.0))]
    text = compare(results, columns=["objective"], bold=True)
    assert [BOLD in line for line in text.split("\n")] == [False, True, True, False]
    assert BOLD not in compare(results, columns=["rounds"], bold=True)  # all equal
    assert BOLD not in compare(results[:1], bold=True)  # one row
    assert BOLD not in compare(results, columns=["objective"])  # no terminal


def test_runs_on_other_data_do_not_compete():
    results = [
        recorded(k0=k, objective=(8.0, k * m), config={"data": {"clients": m}}) for k in (1, 2) for m in (10, 20)
    ]
    text = compare(results, columns=["objective"], form="markdown")
    assert [line.endswith("** |") for line in text.split("\n")[2:]] == [True, True, False, False]


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("mean", "sd", "told"),
    [
        (1.23456, 0.01234, "1.235 ± 0.012"),
        (1234.5, 56.7, "1234 ± 57"),
        (12345.6, 6789.0, "12346 ± 6789"),
        (0.0996, 0.0996, "0.100 ± 0.100"),
        (1.5e-8, 2.5e-9, "(1.50 ± 0.25)e-8"),
        (1e-9, 3e-8, "(0.1 ± 3.0)e-8"),
        (3.0, 0.0, "3 ± 0"),
        (1.0, 1e-12, "1.00000 ± 1e-12"),
        (2.5, float("nan"), "2.5"),
        (123456, float("nan"), "123456"),
        (1234567.8, float("nan"), "1.235e6"),
        (-0.00123456, float("nan"), "-0.001235"),
        (0.0, float("nan"), "0"),
        (0.0, 0.0, "0 ± 0"),
        (1e300, 1e299, "(1.00 ± 0.10)e300"),
        (float("nan"), 1.0, "–"),
    ],
)
def test_the_deviation_decides_on_digits(mean, sd, told):
    assert plain(Number(mean, sd), 1.0) == told


def test_a_mean_is_rounded_where_it_has_too_many_digits():
    assert digits(123.456789, 1e-9) == ("123.457", "1e-09", 0)


def test_what_diverged_has_a_mean_still():
    assert cells(compare(seeds(1e200, 3e200), columns=["objective"]))[1] == [["fedgia", "2", "(2.0 ± 1.4)e200"]]


def test_bytes_have_one_unit_in_a_column():
    results = [recorded(k0=k, columns={"bytes_up": (0, 0, size)}) for k, size in ((1, 500), (2, 2_500_000))]
    head, rows = cells(compare(results, columns=["bytes_up"]))
    assert head[-1] == "up (MB)"
    assert [row[-1] for row in rows] == ["0.0005", "2.5"]


# ---------------------------------------------------------------- formats

TABLE = Table(
    [("method", "method"), ("‖∇f‖²", r"$\|\nabla f\|^2$")],
    ["method", "grad_norm_sq"],
    [["a_b|c*", Number(1.5e-8, 2.5e-9, True)], ["50% $x$ & #1 {~^\\}", Number(2.0)]],
    [1.0, 1.0],
)


def test_a_terminal_has_columns_in_line():
    text = terminal(TABLE)
    assert text == (
        "method                         ‖∇f‖²\n"
        "a_b|c*              (1.50 ± 0.25)e-8\n"
        "50% $x$ & #1 {~^\\}                 2"
    )
    assert terminal(TABLE, bold=True).replace(BOLD, "").replace("\033[0m", "") == text


def test_markdown_escapes_what_it_would_obey():
    assert markdown(TABLE).split("\n") == [
        "| method | ‖∇f‖² |",
        "| :-- | --: |",
        r"| a\_b\|c\* | **(1.50 ± 0.25)e-8** |",
        r"| 50% $x$ & #1 {~^\\} | 2 |",
    ]


def test_latex_is_of_booktabs_and_escapes_what_it_would_obey():
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
        assert escaped(sign) != sign


def test_latex_of_runs_has_as_many_cells_everywhere_and_braces_that_match():
    results = [
        *seeds(1.0, 2.0),
        *seeds(1.0, 2.0, name="fedadmm", k0=7),
        recorded(columns={"accuracy": (0, 0, 1)}, k0=9),
    ]
    lines = compare(results, form="latex").split("\n")
    body = [line for line in lines if line.endswith(r"\\")]
    wide = len(re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0]).group(1))
    assert {len(re.split(r"(?<!\\)&", line)) for line in body} == {wide}
    for line in lines:
        assert line.count("{") == line.count("}")
        assert line.count("$") % 2 == 0


def test_csv_is_read_back_as_it_was():
    results = [*seeds(1.0, 2.5), recorded(k0=10, objective=(8.0, 1 / 3), config={"data": {"path": 'a,"b"'}})]
    rows = list(csv.DictReader(io.StringIO(compare(results, form="csv"))))
    assert [row["algorithm.k0"] for row in rows] == ["5", "10"]
    assert [row["n"] for row in rows] == ["2", "1"]
    assert rows[1]["data.path"] == 'a,"b"'
    assert float(rows[0]["objective"]) == 1.75
    assert float(rows[0]["objective_sd"]) == np.std([1.0, 2.5], ddof=1)
    assert float(rows[1]["objective"]) == 1 / 3
    assert rows[1]["objective_sd"] == ""
    assert rows[0]["bytes_up"] == "2000"
    assert {"tct_seconds", "lct_seconds", "rounds", "rounds_sd"} <= set(rows[0])


def test_pandas_reads_the_csv():
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(compare([*seeds(1.0, 2.0), *seeds(3.0, k0=9)], form="csv")))
    assert frame["objective"].tolist() == [1.5, 3.0]
    assert frame["rounds"].dtype.kind == "i"


def test_names_of_csv_are_unique():
    table = Table([("a", "a")], ["a"], [["x"]], [1.0])
    assert comma_separated(table) == "a\nx"
    results = [recorded(config={"rounds": rounds}) for rounds in (100, 200)]
    names = compare(results, form="csv").split("\n")[0].split(",")
    assert len(names) == len(set(names))


# ---------------------------------------------------------------- runs that did not finish


def test_a_run_that_did_not_finish_is_named_and_left_out(tmp_path):
    results = [
        *seeds(1.0, 3.0),
        recorded(tmp_path / "died.h5", seed=2, objective=(8.0,), status="running"),
        recorded(k0=10, status="failed", objective=(8.0, 9.0)),
    ]
    text = compare(results, columns=["objective"])
    head, rows = cells(text)
    assert head == ["algorithm", "k0", "n", "status", "objective"]
    assert rows == [["fedgia", "5", "2", "2 finished, 1 running", "2.0 ± 1.4"], ["fedgia", "10", "0", "failed", "–"]]
    assert text.split("\n")[-2:] == [
        f"left out: {tmp_path}/died.h5 (running, 0 rounds)",
        "left out: a result (failed, 1 round)",
    ]
    assert compare(results, columns=["objective"], form="latex").startswith("% left out: ")
    assert "left out" not in compare(results, form="csv")


def test_all_runs_count_where_that_is_asked_for():
    results = [*seeds(1.0, 3.0), recorded(seed=2, objective=(8.0,), status="stopped")]
    text = compare(results, columns=["objective"], everything=True)
    assert cells(text)[1] == [["fedgia", "3", "2 finished, 1 stopped", "4.0 ± 3.6"]]
    assert "left out" not in text


# ---------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path):
    for seed in range(3):
        for name in ("fedgia", "fedadmm"):
            recorded(tmp_path / f"{name}-{seed}.h5", seed, (8.0, 4.0 + seed + (name == "fedgia")), name=name)
    return tmp_path


def test_the_command_prints_a_table(folder):
    done = mpifed("compare", *sorted(folder.glob("*.h5")), "--columns", "objective,rounds", "--sort", "objective")
    assert (done.code, done.err) == (0, "")
    assert cells(done.out) == (
        ["algorithm", "n", "objective", "CR"],
        [["fedadmm", "3", "5.0 ± 1.0", "1 ± 0"], ["fedgia", "3", "6.0 ± 1.0", "1 ± 0"]],
    )
    done = mpifed("compare", *sorted(folder.glob("*.h5")), "--by", "none", "--format", "csv", "--columns", "objective")
    assert done.out.split("\n")[0] == "algorithm,seed,n,objective,objective_sd"
    assert len(done.out.split("\n")) == 8


def test_bold_is_for_terminals(folder):
    command = [sys.executable, "-m", "mpifed", "compare", *sorted(folder.glob("*.h5")), "--columns", "objective"]
    assert "\033" not in mpifed(*command[3:]).out
    leader, follower = pty.openpty()
    try:
        subprocess.run(
            [str(word) for word in command],
            stdout=follower,
            check=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert os.read(leader, 4096).decode().count(BOLD) == 1
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.h5"], "nowhere.h5 cannot be read: no such file or directory"),
        (["study.toml"], "study.toml is not a result file: it is not HDF5"),
        (["fedgia-0.h5", "--format", "html"], "unknown format 'html'; the choices are terminal, markdown, latex, csv"),
        (["fedgia-0.h5", "--sort", "objectve"], "unknown column 'objectve'; did you mean 'objective'?"),
        ([], "the following arguments are required: result"),
    ],
)
def test_mistakes_are_sentences(folder, words, told):
    (folder / "study.toml").write_text("seed = 1")
    done = mpifed("compare", *words, cwd=folder)
    assert (done.code, done.out, done.err) == (2, "", f"mpifed: {told}\n")


def test_settings_cannot_send_commands_to_the_terminal(folder):
    recorded(folder / "evil.h5", name="\033[2Jfed")
    done = mpifed("compare", folder / "evil.h5", folder / "fedgia-0.h5")
    assert "\033" not in done.out
    assert r"\x1b[2Jfed" in done.out
