"""The speed benchmarks run, at tiny sizes, and print their ratios; how fast anything is, no test says."""

import os
import re
import sys

import numpy as np
import pytest

from benchmarks.speed import flute, local, picking, roofline
from benchmarks.speed.plain import METHODS
from benchmarks.speed.startup import Goal, commands, timed, verdict
from tests.benchmarks.speed.conftest import rows
from tests.helpers.commands import ROOT, mpirun

SPREAD = r"[\d.]+ \([\d.]+–[\d.]+\)"
FAST = ["--repeat", "1", "--dtypes", "float32"]


def ratios(table, count):
    """The lines with so many ratios and their ranges."""
    return [line for line in table if len(re.findall(SPREAD, line)) == count]


@pytest.mark.slow
def test_tables_have_a_line_for_each_case(printed):
    table = printed("memory", "--clients", "10", "--rounds", "2", "--repeat", "1", "--selected", "5")
    assert len(ratios(table, 3)) == 2
    head, *lines = printed("memory_table", "--scale", "0.02", "--only", "float64 numpy")
    assert head.split()[-2:] == ["host", "device"]
    assert [" ".join(line.split()[:3]) for line in lines] == [f"{name} float64 numpy" for name in ("A", "B", "CSR")]
    assert all(float(line.split()[5]) > 1 for line in lines)  # MB of the peak
    words = ["--shapes", "sparse", "--dtypes", "float64", "--repeat", "1", "--least", "0", "--busy"]
    lines = ratios(printed("kernels", *words), 3)
    assert len(lines) == 15
    assert max(float(line.split()[-1]) for line in lines) < 1e-10, "kernels do what the loop does"
    table = printed("rounds", "--rounds", "2", "--repeat", "1", "--cases", "B", "--busy", "block_bytes=100_000")
    lines = [line for line in table if re.match("B +float", line)]
    assert len(lines) == 2
    for line in lines:
        alone, busy, quoted = map(float, line.split()[-3:])
        assert quoted == max(alone, busy) > 0
    (line,) = printed("rounds", "--rounds", "2", "--cases", "B", *FAST, "--sizes")[1:]
    assert re.search(r" [\d.]+ +[\d.]+ at \d+ KB$", line)


@pytest.mark.slow
def test_a_whole_command_is_measured_with_what_takes_it(printed, monkeypatch):
    monkeypatch.delenv("MPIFED_DATA", raising=False)
    monkeypatch.setattr(flute, "IMAGES", {"train": 60_000, "t10k": 9_000})
    title, whole, *parts = printed("flute", "--repeat", "1", "--rounds", "2")
    assert title.startswith("random bytes in the shapes of MNIST, 2 rounds")
    assert re.match(f"whole +{SPREAD} +goal", whole)
    seconds = [float(line.split()[-1]) for line in parts]
    assert len(seconds) == 2 + len(flute.PARTS)
    assert 0 < sum(seconds) < 60


@pytest.mark.slow
def test_both_kernels_are_measured_where_numba_is_installed(printed):
    pytest.importorskip("numba")
    small = ["--shapes", "small", "--problems", "logistic,softmax", *FAST, "--least", "0", "--kernels", "both"]
    for table, numpy, compiled in (
        (printed("rounds", "--rounds", "2", "--cases", "B", *FAST, "--kernels", "both"), 1, 1),
        (printed("kernels", *small), 6, 3),  # softmax has none
    ):
        assert sum(bool(re.search("float32 +numpy ", line)) for line in table) == numpy
        assert sum(bool(re.search("float32 +compiled ", line)) for line in table) == compiled


@pytest.mark.slow
def test_scaling_writes_a_table_and_a_picture(printed, tmp_path):
    mpirun(1)  # skips where there is none
    few = ["--ranks", "1,2", "--clients", "6", "--rounds", "3", "--repeat", "1"]
    table = printed("scaling", *few, "--to", tmp_path)
    assert sum(line.startswith(("strong ", "weak ")) for line in table) == 4
    points = rows(tmp_path / "scaling.csv")
    found = [(point["kind"], point["client_ranks"], point["clients"]) for point in points]
    assert found == [("strong", "1", "6"), ("strong", "2", "6"), ("weak", "1", "6"), ("weak", "2", "12")]
    assert float(points[0]["efficiency"]) == float(points[0]["predicted_efficiency"]) == 1
    assert all(0 < float(point["predicted_efficiency"]) < 1.05 for point in points)
    crowded = len(os.sched_getaffinity(0)) < 3  # one server and two client ranks
    assert [point["oversubscribed"] for point in points] == ["0", str(int(crowded))] * 2
    assert ("share cores" in table[-2]) == crowded
    ranks = rows(tmp_path / "ranks.csv")
    assert [(row["client_ranks"], row["rank"]) for row in ranks] == [(p, r) for p in "12" for r in "012"[: int(p) + 1]]
    assert all(float(row["computing_seconds"]) > 0 for row in ranks)
    assert (tmp_path / "scaling.png").exists() or "needs matplotlib" in table[-1]


@pytest.mark.slow
def test_ranks_are_measured_beside_as_many_processes_that_know_nothing_of_each_other(printed):
    mpirun(1)  # skips where there is none
    table = printed("apart", "--ranks", "1,2", "--clients", "6", "--rounds", "3", "--repeat", "1")
    lines = [line.replace("*", " ").split() for line in table if line.startswith(("together ", "apart "))]
    assert [line[:2] for line in lines] == [["together", "1"], ["together", "2"], ["apart", "1"], ["apart", "2"]]
    assert [line[8] for line in lines if line[1] == "1"] == ["1.00", "1.00"], "each kind beside its own smallest number"


@pytest.mark.slow
def test_the_roofline_has_every_kernel_below_its_ceilings(printed, tmp_path):
    words = ["--dtypes", "float32", "--repeat", "2", "--least", "0.01", "--most", "3e7"]
    table = printed("roofline", *words, "--to", tmp_path)
    found = rows(tmp_path / "roofline.csv")
    rates = {(row["name"], row["dtype"], row["kernels"]): float(row["alone"]) for row in found}
    assert rates["L1", "", ""] > rates["memory", "", ""] > 0
    kernels = [row for row in found if row["kernels"]]
    assert {row["name"] for row in kernels} == set(roofline.KERNELS)
    for row in kernels:
        assert 0 < float(row["alone"]) < rates["gemm", "float32", ""]
        assert float(row["alone"]) < float(row["flops_per_byte"]) * rates["L1", "", ""]
        assert any(line.startswith(row["name"]) for line in table)
    assert (tmp_path / "roofline.png").exists() or "needs matplotlib" in table[-1]


@pytest.mark.slow
def test_flops_and_bytes_of_a_kernel_are_those_of_its_samples():
    flops = 4 * 128 * 70 * 1024
    size = flops + 4 * 128 * 70
    amounts = {name: roofline.amounts(roofline.Task(name, "numpy", "float32", 0.0)) for name in roofline.KERNELS}
    for name, times in (("logistic", 1), ("logistic, 5 steps", 5), ("softmax", 10)):
        assert amounts[name] == (times * flops, size)
    flops, size = amounts["logistic, CSR"]
    assert size > 2 * flops  # of each number 4 flops, 4 bytes and 4 bytes of its column


def test_reads_fill_half_of_a_cache_and_a_level_that_is_no_larger_is_left_out(monkeypatch):
    read = {"L1": 1 << 14, "L2": 1 << 19, "memory": 1 << 30}
    for L3, more in ((1 << 25, {"L3": 1 << 24}), (1 << 29, {"L3": 1 << 24}), (1 << 21, {}), (None, {})):
        known = {"L1": 1 << 15, "L2": 1 << 20} | ({"L3": L3} if L3 else {})
        monkeypatch.setattr(roofline, "caches", lambda known=known: known)
        assert roofline.reads(1 << 30) == read | more


@pytest.mark.parametrize("method", METHODS)
def test_the_loop_does_what_the_method_does(method, monkeypatch):
    assert method in (*local.WHOLE, *local.BATCHES)
    monkeypatch.setitem(local.SIZES, "small", (7, 12, 5))
    assert local.deviation(local.Case(method, "small")) < 1e-5


@pytest.mark.slow
def test_two_trees_are_measured_in_turn(printed, tmp_path):
    words = ["--methods", "fedavg", "--sizes", "small", "--rounds", "2", "--repeat", "1", "--before"]
    head, line = printed("local", *words, ROOT)
    assert " ".join(head.split()) == "method size ours ms loop ms ours : loop deviation before gained"
    assert re.fullmatch(r"fedavg +small( +\d+\.\d+){3} +\d\.\de-\d\d( +\d+\.\d+){2}", line)
    (tmp_path / "mpifed").mkdir()
    (tmp_path / "mpifed" / "__init__.py").write_text("raise RuntimeError('it is this one')")
    with pytest.raises(SystemExit, match=rf"the rounds of {tmp_path} ended with code 1\n(.*\n)*.*it is this one"):
        printed("local", *words, tmp_path)


def test_every_selected_client_is_picked_and_no_other(monkeypatch):
    seen = []

    def idle(self, f, client):
        seen.append(f.ids)
        return client, f.d.astype(float)

    monkeypatch.setattr(picking.Resting, "idle", idle)
    picking.measure(300, 20, 1, 2, 2)
    for ids in np.split(np.concatenate(seen), 2):
        assert len(set(ids)) == 20
    rounds = []
    assert picking.median(rounds.append, 3) < 1  # ms
    assert rounds == [1, 2, 3, 4]  # the first one is a warm-up


@pytest.mark.parametrize(("goal", "met"), [(1e9, "yes"), (0.0, "no")])
def test_picking_has_a_line_for_each_number_of_clients_and_says_if_it_met_its_goal(goal, met, printed, monkeypatch):
    monkeypatch.setattr(picking, "GOAL", goal)
    head, *lines, last = printed("picking", "--clients", "200,400", "--selected", "10", "--rounds", "2")
    assert head.split() == ["clients", "uniform", "cover", "deal", "biased", "pick", "sum", "load", "s"]
    assert [line.split()[0] for line in lines] == ["200", "400"]
    for line in lines:
        values = [float(word) for word in line.split()[1:]]
        assert values[5] == pytest.approx(values[0] + values[4], abs=0.002)
    assert last.endswith(met)


def test_the_time_of_a_command_is_wall_time_and_the_cpu_time_of_its_processes_and_a_goal_is_met_by_the_median():
    assert timed([sys.executable, "-c", "import time; time.sleep(0.3)"]).wall > 0.3
    code = "import time\nwhile time.process_time() < 0.1: pass"
    both = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert timed([sys.executable, "-c", both]).cpu > 0.1
    with pytest.raises(SystemExit, match=r"ended with code 3\nno disk$"):
        timed([sys.executable, "-c", "import sys; sys.stderr.write('no disk'); sys.exit(3)"])
    walls = {"python": [0.1, 0.2, 0.3], "import": [0.14, 0.29, 0.34], "run": [1.0, 2.0, 9.0]}
    goals = {None: "", Goal(2.0): "≤ 2.0: yes", Goal(1.9): "≤ 1.9: no"}
    assert {goal: verdict(goal, "run", walls) for goal in goals} == goals
    goals = {Goal(g, "python"): f"0.040 ≤ {g} beyond python: {met}" for g, met in ((0.05, "yes"), (0.03, "no"))}
    assert {goal: verdict(goal, "import", walls) for goal in goals} == goals


@pytest.mark.slow
def test_every_start_has_a_line_and_the_study_needs_a_launcher(printed, tmp_path):
    table = printed("startup", "--repeat", "1", "--launcher", "")
    assert [line.split()[0] for line in table] == ["command", "python", "import", "--version"]
    assert commands("srun -n {ranks}", tmp_path)["study, 5 ranks"][:4] == ["srun", "-n", "5", sys.executable]
