"""The programs of speed measure what they say, and all of them run; how fast anything is, no test says."""

import argparse
import csv
import importlib.util
import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.speed import __main__ as sitting
from benchmarks.speed import kernels, measuring, predict, rounds, secondorder
from benchmarks.speed.plain import METHODS
from tests.helpers.commands import ROOT, execute, mpirun

EVERY = sitting.STEPS | sitting.STUDIES
MACHINE = predict.machine_of(predict.MACHINE)
NEEDS = {"networks": "torch", "passes": "torch", "gpu_networks": "torch"}


def test_the_worse_of_alone_and_busy_is_quoted():
    assert measuring.quoted([0.9]) == [0.9]
    assert measuring.quoted([0.9, 0.8, 1.1]) == [0.9, 1.1, 1.1]
    pairs = [rounds.Pair(2.0, 4.0, 1e-7), rounds.Pair(1.0, 8.0, 1e-6)]
    assert rounds.ratio(pairs) == 0.25  # the best of each
    assert rounds.cells([pairs]) == ["1000 (1500)", "4000 (6000)", "1.0e-06", 0.25]


def test_programs_know_the_options_of_their_steps_and_a_step_or_case_that_is_not_there_is_refused(
    tmp_path, monkeypatch, capsys
):
    """As they are given for the numbers of the pages; the smallest sizes run below."""
    parse = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", lambda self: sys.exit(repr(parse(self))))
    args = argparse.Namespace(to=tmp_path / "a folder's", quick=False, launcher="echo -n {ranks}")
    for name in EVERY:
        if name not in NEEDS or importlib.util.find_spec(NEEDS[name]):
            for command in EVERY[name]:
                words = sitting.words(name, command, args)
                monkeypatch.setattr(sys, "argv", words[words.index("-m") + 1 :])
                with pytest.raises(SystemExit, match="Namespace"):
                    importlib.import_module(f"benchmarks.speed.{command.program}").main()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["speed", "--only", "kernel", "--to", str(tmp_path / "new")])
    with pytest.raises(SystemExit, match="2"):
        sitting.main()
    assert "there is no 'kernel'; --only takes rounds, kernels, " in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["kernels", "--cases", "softmax,hard"])
    with pytest.raises(SystemExit, match="there is no 'hard'; --cases takes least squares, logistic, "):
        kernels.main()
    assert sitting.shown(["nowhere"], sys.stdout) > 0  # a launcher that is not there ends one step, not all of them
    assert "nowhere does not start: No such file or directory\n" in capsys.readouterr().out


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


@pytest.mark.parametrize("method", METHODS)
def test_the_plain_loop_does_what_the_method_does(method, monkeypatch):
    monkeypatch.setitem(rounds.CASES, "small", (7, 12, 5, None))
    task = rounds.Task("small", "float32", 3, rounds.method(method, "small"), 3)
    assert rounds.deviation(task) < 1e-5
    if method == "fedavg":  # and with full gradients, as a bare loop over blocks too
        for kind in ("numpy", "compiled") if find_spec("numba") else ("numpy",):
            found = rounds.prepare(task._replace(method=rounds.FULL, kind=kind, bare=True))()
            assert found.deviation < 1e-5
            assert found.bare > 0


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


@pytest.mark.slow
def test_the_page_has_the_table_of_ranks_and_a_slow_network_is_worth_fewer_ranks():
    assert predict.ranks_table(MACHINE, True) in (ROOT / "docs" / "clusters.md").read_text("utf-8")
    slow = predict.machine_of("1e-3,1e8," + predict.MACHINE.split(",", 2)[2])
    fewer, more = (predict.most_ranks(machine, 10_000, 1000, 0.5, True)[0] for machine in (slow, MACHINE))
    assert fewer < more
    assert predict.most_ranks(slow, 4, 2, 0.5, True) == (1, predict.seconds(slow, 1, 4, 2, True))
    for m, n in ((100, 20), (1000, 1000), (10_000, 20)):
        best, spent = predict.most_ranks(MACHINE, m, n, 0.5, True)
        alone, hosts = predict.seconds(MACHINE, 1, m, n, True), best - 1
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
    with (tmp_path / "tree.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
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
