"""The programs of speed measure what they say, and all of them run; how fast anything is, no test says."""

import argparse
import csv
import io
import os
import re
import sys
import time
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from benchmarks.speed import __main__ as sitting
from benchmarks.speed import collectives, kernels, measuring, memory, predict, rounds, secondorder, startup
from benchmarks.speed.plain import METHODS
from benchmarks.speed.printing import Table, figure, spread
from tests.helpers.commands import ROOT, execute, mpirun

EVERY = sitting.STEPS | sitting.STUDIES
MACHINE = predict.machine_of(predict.MACHINE)
NEEDS = {"networks": "torch", "gpu_networks": "torch"}


def rows(path):
    """The rows of a table, by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_has_three_digits_on_the_terminal_and_all_of_them_in_the_file(tmp_path, capsys):
    table = Table({"case": 4, "ours : loop": 20, "ms": 6}, tmp_path / "table.csv")
    table.row("A", spread([2.0, 1.0, 4.0]), 0.012345)
    table.row("B", spread([5.0]), None)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == "case  ours : loop           ms"
    assert first == "A     2.00 (1.00–4.00)      0.0123"
    assert second == "B     5.00 (5.00–5.00)      –"
    found = rows(tmp_path / "table.csv")
    assert found[0] == {
        "case": "A",
        "ours_to_loop": "2.0",
        "ours_to_loop_least": "1.0",
        "ours_to_loop_most": "4.0",
        "ms": "0.012345",
    }
    assert [figure(value) for value in (1234.5, 0.0, float("nan"))] == ["1234", "0", "–"]


def logging(folder):
    """A repetition that notes when it ended; those of the process that comes first take ten times as long."""
    try:
        (folder / "slow").touch(exist_ok=False)
        seconds = 0.1
    except FileExistsError:
        seconds = 0.01

    def run():
        begun = time.monotonic()
        time.sleep(seconds)
        with (folder / str(os.getpid())).open("a") as file:
            print(time.monotonic(), file=file)
        return os.getpid(), begun, measuring.cores()

    return run


def broken(when):
    if when == "preparing":
        raise ZeroDivisionError("nothing to measure")
    return lambda: 1 / 0


@pytest.mark.slow
def test_copies_are_processes_on_their_cores_and_one_that_is_done_works_on_until_the_last_one_is(tmp_path):
    cores = (measuring.cores() * 2)[:2]
    found = measuring.copies(partial(logging, tmp_path), 3, cores)
    assert [len(copy) for copy in found] == [3, 3]
    calls = {pid: (tmp_path / str(pid)).read_text().split() for ((pid, *_), *_) in found}
    assert len(calls) == 2
    assert os.getpid() not in calls
    if hasattr(os, "sched_setaffinity"):
        assert [where for (_, _, where), *_ in found] == [[core] for core in cores]
    slow, fast = sorted(calls, key=lambda pid: len(calls[pid]))
    last = {copy[0][0]: copy[-1][1] for copy in found}  # when the last repetition that counts began
    assert len(calls[slow]) == 3 < len(calls[fast])
    assert float(calls[fast][-1]) > last[slow]
    for when in ("preparing", "measuring"):
        with pytest.raises(ZeroDivisionError):
            measuring.copies(partial(broken, when), 1, measuring.cores()[:2])


def test_the_worse_of_alone_and_busy_is_quoted():
    assert measuring.quoted([0.9]) == [0.9]
    assert measuring.quoted([0.9, 0.8, 1.1]) == [0.9, 1.1, 1.1]
    pairs = [rounds.Pair(2.0, 4.0, 1e-7), rounds.Pair(1.0, 8.0, 1e-6)]
    assert rounds.ratio(pairs) == 0.25  # the best of each
    assert rounds.cells([pairs]) == ["1000 (1500)", "4000 (6000)", "1.0e-06", 0.25]


def test_the_file_of_a_program_has_its_command_what_it_printed_and_how_it_ended(capsys):
    file = io.StringIO()
    assert sitting.shown([sys.executable, "-c", "print('a table')"], file) == 0
    assert sitting.shown([sys.executable, "-c", "import sys; sys.exit('no data')"], file) == 1
    text = file.getvalue()
    assert text == capsys.readouterr().out
    assert "$ python -c 'print('\"'\"'a table'\"'\"')'\n" in text
    assert "\nno data\n(failed with code 1, " in text


class Parsed(Exception):
    """The words of a program are right."""


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_every_step_has_programs_that_are_there_and_know_their_options(name, quick, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    known = argparse.ArgumentParser.parse_args

    def parse(self):
        known(self)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    args = argparse.Namespace(to=tmp_path, quick=quick, launcher="echo -n {ranks}")
    for command in EVERY[name]:
        words = sitting.words(name, command, args)
        monkeypatch.setattr(sys, "argv", words[words.index("-m") + 1 :])
        with pytest.raises(Parsed):
            import_module(f"benchmarks.speed.{command.program}").main()


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_program_runs_with_its_smallest_sizes(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if name == "secondorder" and "MPIFED_DATA" not in os.environ:
        pytest.skip("MPIFED_DATA names no folder with phishing")
    launcher = " ".join(map(str, mpirun(1)[:1])) + " -n {ranks}"  # skips where there is none
    studies = ["--studies"] if name in sitting.STUDIES else []
    words = ["--quick", "--only", name, "--launcher", launcher, "--to", tmp_path, *studies]
    done = execute([sys.executable, "-m", "benchmarks.speed", *words], 400, cwd=ROOT)
    assert done.code == 0, done.out + done.err
    kept = (tmp_path / f"{name}.txt").read_text("utf-8")
    assert kept in done.out
    assert len(kept.splitlines()) > 3  # the command, a head, and what was measured
    assert (tmp_path / "machine.txt").read_text("utf-8") in done.out


@pytest.mark.slow
def test_a_sitting_tells_what_failed_and_goes_on(tmp_path):
    words = ["--quick", "--only", "scaling-B,memory", "--launcher", "false", "--to", tmp_path]
    done = execute([sys.executable, "-m", "benchmarks.speed", *words], 200, cwd=ROOT)
    assert done.code == 1
    assert done.err.strip() == "failed: scaling-B"
    assert "ended with code 1" in (tmp_path / "scaling-B.txt").read_text("utf-8")
    assert "A float32 numpy" in (tmp_path / "memory.txt").read_text("utf-8")


def test_the_machine_is_described_and_a_step_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["speed", "--machine"])
    sitting.main()
    facts = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines() if line)
    assert {"date", "processor", "caches", "memory", "BLAS", "MPI", "mpifed", "numpy", "numba", "commit"} <= set(facts)
    assert facts["cores"].startswith(str(len(measuring.cores())))
    monkeypatch.setattr(sys, "argv", ["speed", "--only", "kernel", "--to", str(tmp_path / "new")])
    with pytest.raises(SystemExit, match="2"):
        sitting.main()
    assert "there is no 'kernel'; --only takes rounds, kernels, " in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("method", METHODS)
def test_the_plain_loop_does_what_the_method_does(method, monkeypatch):
    monkeypatch.setitem(rounds.CASES, "small", (7, 12, 5, None))
    task = rounds.Task("small", "float32", 3, rounds.method(method, "small"), 3)
    assert rounds.deviation(task) < 1e-5
    if method == "fedavg":  # and with full gradients
        assert rounds.prepare(task._replace(method=rounds.FULL))().deviation < 1e-5


@pytest.mark.parametrize("name", ["logistic CSR", "logistic small 5 steps", "softmax small", "least squares"])
def test_kernels_do_what_the_loop_does_and_flops_and_bytes_are_those_of_the_samples(name, monkeypatch):
    monkeypatch.setitem(kernels.SHAPES, "wide", (4, 7, 7, 30, 1.0))
    task = kernels.Task(name, "float64", "numpy", 0.0)
    ours, loop, off = kernels.prepare(task)()
    assert off < 1e-12
    assert min(ours, loop) > 0
    m, samples, _, n, share = task.shape
    flops, size = task.amounts()
    if share < 1:
        assert size > 2 * flops  # of each number 4 flops, 8 bytes and 4 bytes of its column
    else:
        assert flops == 4 * m * samples * n * task.classes * kernels.KERNELS[name][2]
        assert size == 8 * m * samples * (n + 1)


def test_reads_fill_half_of_a_cache_and_a_level_that_is_no_larger_is_left_out(monkeypatch):
    read = {"L1": 1 << 14, "L2": 1 << 19, "memory": 1 << 30}
    for L3, more in ((1 << 25, {"L3": 1 << 24}), (1 << 29, {"L3": 1 << 24}), (1 << 21, {}), (None, {})):
        known = {"L1": 1 << 15, "L2": 1 << 20} | ({"L3": L3} if L3 else {})
        monkeypatch.setattr(kernels, "caches", lambda known=known: known)
        assert kernels.reads(1 << 30) == read | more


def test_every_selected_client_is_picked_and_no_other(monkeypatch):
    seen = []

    def idle(self, f, client):
        seen.append(f.ids)
        return client, f.d.astype(float)

    monkeypatch.setattr(collectives.Idle, "idle", idle)
    found = collectives.measure(300, 20, 1)
    assert found.sum == found.uniform + found.pick
    for ids in np.split(np.concatenate(seen), 2):
        assert len(set(ids)) == 20


def test_the_time_of_a_command_is_wall_time_and_the_cpu_time_of_its_processes_and_a_goal_is_met_by_the_median():
    assert startup.timed([sys.executable, "-c", "import time; time.sleep(0.3)"]).wall > 0.3
    code = "import time\nwhile time.process_time() < 0.1: pass"
    both = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert startup.timed([sys.executable, "-c", both]).cpu > 0.1
    with pytest.raises(SystemExit, match=r"ended with code 3\nno disk$"):
        startup.timed([sys.executable, "-c", "import sys; sys.stderr.write('no disk'); sys.exit(3)"])
    walls = {"python": [0.1, 0.2, 0.3], "import": [0.14, 0.29, 0.34], "run": [1.0, 2.0, 9.0]}
    goals = {None: "", startup.Goal(2.0): "≤ 2.0: yes", startup.Goal(1.9): "≤ 1.9: no"}
    assert {goal: startup.verdict(goal, "run", walls) for goal in goals} == goals
    assert startup.verdict(startup.Goal(0.03, "python"), "import", walls) == "0.040 ≤ 0.03 beyond python: no"
    assert sum(startup.partition()["sizes"]) == startup.SAMPLES


def test_growth_is_of_resident_memory_and_seconds_are_those_of_a_tenth_of_the_rounds_at_either_end():
    assert memory.marked(21_000) == [1000, 3000, 19_000, 21_000]
    states = [(1000, 50_000_000, 1.0), (3000, 0, 1.2), (19_000, 0, 2.0), (21_000, 55_000_000, 2.6)]
    assert memory.growth([memory.Mark(*state) for state in states]) == pytest.approx([50, 55, 10, 100, 300])
    before = memory.resident()
    held = np.ones(1 << 25)
    assert memory.resident() - before > 0.5 * held.nbytes


@pytest.mark.slow
def test_the_page_has_the_table_of_ranks_and_a_slow_network_is_worth_fewer_ranks():
    assert predict.ranks_table(MACHINE, True) in (ROOT / "docs" / "clusters.md").read_text("utf-8")
    slow = predict.machine_of("1e-3,1e8," + predict.MACHINE.split(",", 2)[2])
    assert (
        predict.most_ranks(slow, 10_000, 1000, 0.5, True)[0] < predict.most_ranks(MACHINE, 10_000, 1000, 0.5, True)[0]
    )
    assert predict.most_ranks(slow, 4, 2, 0.5, True) == (1, predict.seconds(slow, 1, 4, 2, True))
    for m, n in ((100, 20), (1000, 1000), (10_000, 20)):
        best, spent = predict.most_ranks(MACHINE, m, n, 0.5, True)
        alone = predict.seconds(MACHINE, 1, m, n, True)
        hosts = best - 1
        assert alone / (hosts * spent) >= 0.5
        if 2 * hosts <= min(m, predict.MOST):
            assert alone / (2 * hosts * predict.seconds(MACHINE, 2 * hosts + 1, m, n, True)) < 0.5


def test_the_predicted_way_is_the_fastest_of_mpifed_and_stars_suffer_from_many_ranks(monkeypatch):
    monkeypatch.setattr(predict, "SUM_RANKS", (16, 64, 256))
    monkeypatch.setattr(predict, "LENGTHS", (100, 10_000_000))
    few = {(one.ranks, one.n): one for one in predict.predictions(1000)}
    for one in few.values():
        others = [seconds for way, seconds in one.seconds.items() if way != predict.BARE]
        assert one.seconds[one.chosen] == min(others)
    star, tree = ([few[count, 100].seconds[way] for count in (16, 256)] for way in ("star", "tree"))
    assert star[1] > 10 * star[0]
    assert tree[1] < 4 * tree[0]
    assert (few[256, 100].chosen, few[64, 10_000_000].chosen) == ("tree", "slices")


@pytest.mark.slow
def test_on_each_way_rank_0_receives_the_messages_that_it_should_and_no_bit_changes(tmp_path):
    mpirun(1)  # skips where there is none
    words = ["--part", "tree", "--ranks", "2,3,5", "--to", tmp_path]
    done = execute([sys.executable, "-m", "benchmarks.speed.collectives", *words], 300, cwd=ROOT)
    assert done.code == 0, done.err
    found = rows(tmp_path / "tree.csv")
    assert {row["bits"] for row in found} == {"same"}
    messages = {(row["ranks"], row["kind"]): float(row["messages"]) for row in found}
    assert [messages[count, "star"] for count in "235"] == [1, 2, 4]
    assert [messages[count, "tree"] for count in "235"] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("method", secondorder.METHODS)
def test_fednl_and_newtons_method_in_plain_numpy_end_at_the_minimiser(method, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((142 * 2, 4))
    labels = (samples[:, 0] + 0.5 * rng.standard_normal(len(samples)) > 0).astype(int)
    (tmp_path / "phishing").mkdir()
    lines = [f"{b} " + " ".join(f"{k}:{v}" for k, v in enumerate(a, 1)) for b, a in zip(labels, samples, strict=True)]
    (tmp_path / "phishing/phishing").write_text("\n".join(lines))
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    table = secondorder.study("phishing", method, samples=2)
    pooled = secondorder.Pooled(table)
    x, steps = pooled.newton()
    result, seconds = rounds.timed(secondorder.config.experiment(table))
    assert result.rounds["grad_norm_sq"][-1] <= secondorder.TOLERANCE**2
    assert result.rounds["objective"][-1] == pytest.approx(pooled.value(x), rel=1e-12)
    assert np.allclose(result.x, x, atol=1e-5)
    assert 0 < steps < 15
    assert seconds > 0


def test_without_a_peer_or_pytorch_it_is_one_sentence(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pfl'\" >&2\nexit 1\n")
    python.chmod(0o755)
    code = "import sys; sys.modules['torch'] = None; import benchmarks.speed.peers"
    done = execute([sys.executable, "-c", code], 60, cwd=ROOT)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch("networks are trained by PyTorch, which is not installed: .*\n", done.out)
    pytest.importorskip("torch")
    from benchmarks.speed import peers

    assert peers.missing("pfl", str(python)) == (
        f"pfl-research is not installed for {python} (ModuleNotFoundError: No module named 'pfl'): "
        "pip install pfl torch"
    )
