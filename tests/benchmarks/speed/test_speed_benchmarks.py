"""The speed benchmarks run, at tiny sizes, and print their ratios; how fast anything is, no test says."""

from __future__ import annotations

import csv
import os
import re
import sys

import pytest

from benchmarks.speed import roofline
from tests.helpers.commands import ROOT, execute, mpirun

SPREAD = r"[\d.]+ \([\d.]+–[\d.]+\)"
TINY = {  # words, how many lines with how many ratios there are
    "rounds": (["--rounds", "2", "--repeat", "1", "--cases", "B", "--busy", "block_bytes=100_000"], 2, 0),
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
@pytest.mark.parametrize("name", ["rounds", "kernels"])
def test_both_kernels_are_measured_where_numba_is_installed(name):
    pytest.importorskip("numba")
    words = {
        "rounds": ["--rounds", "2", "--repeat", "1", "--cases", "B", "--dtypes", "float32"],
        "kernels": ["--shapes", "small", "--problems", "logistic,softmax", "--dtypes", "float32", "--least", "0"],
    }
    table = benchmark(name, *words[name], "--kernels", "both")
    assert len(re.findall(r"float32 +numpy ", table)) == {"rounds": 1, "kernels": 6}[name]
    assert len(re.findall(r"float32 +compiled ", table)) == {"rounds": 1, "kernels": 3}[name]  # softmax has none


@pytest.mark.slow
def test_kernels_do_what_the_loop_does():
    table = benchmark("kernels", "--shapes", "sparse", "--dtypes", "float64", "--repeat", "1", "--least", "0")
    off = [float(line.split()[-1]) for line in table.splitlines() if " float64 " in line]
    assert len(off) == 15
    assert max(off) < 1e-10


@pytest.mark.slow
def test_on_each_way_rank_0_receives_the_messages_that_it_should_and_no_bit_changes(tmp_path):
    mpirun(1)  # skips where there is none
    benchmark("tree", "--ranks", "2", "3", "5", "--crossing", "2", "--to", str(tmp_path))
    with (tmp_path / "counts.csv").open() as file:
        found = list(csv.DictReader(file))
    assert all(row["same_bits"] == "True" for row in found)
    messages = {(row["ranks"], row["kind"]): float(row["messages"]) for row in found}
    assert [messages[ranks, "star"] for ranks in "235"] == [1, 2, 4]
    assert [messages[ranks, "tree"] for ranks in "235"] == [1, 2, 3]
    with (tmp_path / "crossing.csv").open() as file:
        times = list(csv.reader(file))
    assert len(times) == 1 + 5
    assert all(float(cell) > 0 for row in times[1:] for cell in row)


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


@pytest.mark.slow
def test_the_roofline_has_every_kernel_below_its_ceilings(tmp_path):
    words = ["--dtypes", "float32", "--repeat", "2", "--least", "0.01", "--most", "3e7", "--to", tmp_path]
    table = benchmark("roofline", *words)
    with (tmp_path / "roofline.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rates = {(row["name"], row["dtype"], row["kernels"]): float(row["alone"]) for row in rows}
    assert rates["L1", "", ""] > rates["memory", "", ""] > 0
    kernels = [row for row in rows if row["kernels"]]
    assert {row["name"] for row in kernels} == set(roofline.KERNELS)
    for row in kernels:
        assert (
            0
            < float(row["alone"])
            < min(rates["gemm", "float32", ""], float(row["flops_per_byte"]) * rates["L1", "", ""])
        )
        assert row["name"] in table
    assert (tmp_path / "roofline.png").exists() or "needs matplotlib" in table


def test_flops_and_bytes_of_a_kernel_are_those_of_its_samples():
    m, d, n = 128, 70, 1024
    size = 4 * m * d * (n + 1)
    tasks = {name: roofline.Task(name, "numpy", "float32", 0.0) for name in roofline.KERNELS}
    assert roofline.amounts(tasks["logistic"]) == (4 * m * d * n, size)
    assert roofline.amounts(tasks["logistic, 5 steps"]) == (5 * 4 * m * d * n, size)
    assert roofline.amounts(tasks["softmax"]) == (10 * 4 * m * d * n, size)
    flops, size = roofline.amounts(tasks["logistic, CSR"])
    assert size > 2 * flops  # of each number 4 flops, 4 bytes and 4 bytes of its column


def test_reads_fill_half_of_a_cache_and_a_level_that_is_no_larger_is_left_out(monkeypatch):
    def sizes(**known):
        monkeypatch.setattr(roofline, "caches", lambda: known)
        return roofline.reads(1 << 30)

    assert sizes(L1=1 << 15, L2=1 << 20, L3=1 << 25) == {"L1": 1 << 14, "L2": 1 << 19, "L3": 1 << 24, "memory": 1 << 30}
    assert sizes(L1=1 << 15, L2=1 << 20, L3=1 << 29)["L3"] == 1 << 24
    assert list(sizes(L1=1 << 15, L2=1 << 20, L3=1 << 21)) == ["L1", "L2", "memory"]
    assert list(sizes(L1=1 << 15, L2=1 << 20)) == ["L1", "L2", "memory"]


def test_a_launcher_that_fails_is_told(tmp_path):
    words = ["-m", "benchmarks.speed.scaling", "--launcher", "", "--ranks", "1", "--to", tmp_path, "problem=nothing"]
    done = execute([sys.executable, *words], 60, cwd=ROOT)
    assert done.code == 1
    assert "unknown problem 'nothing'" in done.err
