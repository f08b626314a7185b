"""The speed benchmarks run, at tiny sizes, and print their ratios; how fast anything is, no test says."""

from __future__ import annotations

import csv
import os
import re
import sys

import pytest

from tests.helpers.commands import ROOT, execute, mpirun

SPREAD = r"[\d.]+ \([\d.]+–[\d.]+\)"
TINY = {  # words, how many lines with how many ratios there are
    "rounds": (["--rounds", "2", "--repeat", "1", "--cases", "B", "--busy"], 2, 0),
    "kernels": (["--shapes", "small", "--dtypes", "float32", "--repeat", "1", "--least", "0", "--busy"], 15, 3),
    "memory": (["--clients", "10", "--rounds", "2", "--repeat", "1", "--selected", "5"], 2, 3),
    "paper_times": (["--seeds", "1", "--only", "V.1 FedGiA", "--k0", "5", "--rounds", "2"], 2, 3),
}


def benchmark(name, *words, timeout=120):
    done = execute([sys.executable, "-m", f"benchmarks.speed.{name}", *words], timeout, cwd=ROOT)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    "name", ["memory", *(pytest.param(name, marks=pytest.mark.slow) for name in TINY if name != "memory")]
)
def test_a_table_is_printed(name):
    words, lines, ratios = TINY[name]
    table = benchmark(name, *words)
    found = [len(re.findall(SPREAD, line)) for line in table.splitlines()]
    if ratios:
        assert found.count(ratios) == lines, table
    else:
        assert len(re.findall(r"^B +float", table, re.MULTILINE)) == lines


@pytest.mark.slow
def test_of_alone_and_busy_the_worse_is_quoted():
    table = benchmark("rounds", "--rounds", "2", "--repeat", "1", "--cases", "B", "--dtypes", "float32", "--busy")
    alone, busy, quoted = map(float, table.splitlines()[-1].split()[-3:])
    assert quoted == max(alone, busy) > 0


@pytest.mark.slow
def test_kernels_do_what_the_loop_does():
    table = benchmark("kernels", "--shapes", "sparse", "--dtypes", "float64", "--repeat", "1", "--least", "0")
    off = [float(line.split()[-1]) for line in table.splitlines() if " float64 " in line]
    assert len(off) == 15
    assert max(off) < 1e-10


@pytest.mark.slow
def test_scaling_writes_a_table_and_a_picture(tmp_path):
    mpirun(1)  # skips where there is none
    table = benchmark("scaling", "--ranks", "1,2", "--clients", "6", "--rounds", "3", "--repeat", "1", "--to", tmp_path)
    assert len(re.findall(r"^(?:strong|weak) ", table, re.MULTILINE)) == 4
    with (tmp_path / "scaling.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["kind"], row["client_ranks"], row["clients"]) for row in rows] == [
        ("strong", "1", "6"),
        ("strong", "2", "6"),
        ("weak", "1", "6"),
        ("weak", "2", "12"),
    ]
    assert float(rows[0]["efficiency"]) == float(rows[0]["predicted_efficiency"]) == 1
    assert all(0 < float(row["predicted_efficiency"]) < 1.05 for row in rows)
    crowded = len(os.sched_getaffinity(0)) < 3  # one server and two client ranks
    assert [row["oversubscribed"] for row in rows] == ["0", str(int(crowded))] * 2
    assert ("share cores" in table) == crowded
    with (tmp_path / "ranks.csv").open(newline="") as file:
        ranks = list(csv.DictReader(file))
    assert [(row["client_ranks"], row["rank"]) for row in ranks] == [(p, r) for p in "12" for r in "012"[: int(p) + 1]]
    assert all(float(row["computing_seconds"]) > 0 for row in ranks)
    assert (tmp_path / "scaling.png").exists() or "needs matplotlib" in table


def test_a_launcher_that_fails_is_told(tmp_path):
    words = ["-m", "benchmarks.speed.scaling", "--launcher", "", "--ranks", "1", "--to", tmp_path, "problem=nothing"]
    done = execute([sys.executable, *words], 60, cwd=ROOT)
    assert done.code == 1
    assert "unknown problem 'nothing'" in done.err
