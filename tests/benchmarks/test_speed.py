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
from benchmarks.speed import measuring, rounds, secondorder
from tests.helpers.commands import ROOT, execute, mpirun

EVERY = sitting.STEPS | sitting.STUDIES
NEEDS = {"networks": "torch", "passes": "torch"}


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
    assert "there is no 'kernel'; --only takes rounds, local-steps, " in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["rounds", "--cases", "A,hard"])
    with pytest.raises(SystemExit, match="there is no 'hard'; --cases takes A, B, C"):
        rounds.main()
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


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_the_plain_loop_and_the_bare_one_end_at_the_model_of_ours(kind, monkeypatch):
    if kind == "compiled" and not find_spec("numba"):
        pytest.skip("numba is not there")
    monkeypatch.setitem(rounds.CASES, "B", (7, 12, 5, None))
    found = rounds.prepare(rounds.Task("B", "float32", 3, (f"kernels={kind}",), kind, True))()
    assert found.deviation < 1e-5
    assert found.bare > 0


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
