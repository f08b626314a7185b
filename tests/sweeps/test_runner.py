"""Sweeps: every point gets a file; what is there is skipped, continued, or not overwritten."""

import itertools
import re

import h5py
import numpy as np

import mpifed as package
from mpifed.cli.main import main
from mpifed.sweeps.grid import points
from mpifed.sweeps.runner import ReportLine, SweepTally
from mpifed.sweeps.runs import FAILED, FINISHED, PointEnd, SweepProgress
from tests.helpers.commands import mpifed
from tests.helpers.killed_runs import content
from tests.sweeps.conftest import FILES, GRIDS, SMALL, alike, listed, signal_in_round, sweep


def test_a_point_has_the_bits_of_a_single_run_and_is_skipped_the_next_time(here, capsys):
    sweep(*GRIDS, "-o", "out")
    assert listed(here / "out") == FILES
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"k0=1,seed=0\.h5  4 rounds  \S+ s  finished \(rounds: 4\)", lines[0])
    assert lines[-1] == "4 of 4 finished"
    assert main(["run", *SMALL, "algorithm.k0=2", "seed=1", "-q", "-o", "one.h5"]) == 0
    assert content(here / "one.h5") == content(here / "out" / FILES[3])
    assert package.load(here / "out" / FILES[3]).config == package.load(here / "one.h5").config
    before = {name: (here / "out" / name).read_bytes() for name in FILES}
    sweep(*GRIDS, "--grid", "rounds=4", "-o", "other", code=2)  # rounds twice
    sweep(*GRIDS, "-o", "out", "--force")
    assert capsys.readouterr().out == "4 of 4 points are finished already\n4 of 4 finished\n"
    assert {name: (here / "out" / name).read_bytes() for name in FILES} == before


def test_a_signal_ends_the_sweep_after_the_round_and_the_same_command_goes_on(here, capsys, monkeypatch):
    sweep(*GRIDS, "-q", "-o", "whole")
    with signal_in_round(monkeypatch, 6):  # the second of the second point
        sweep(*GRIDS, "-o", "part")
    assert "1 of 4 finished; run the same command again to continue" in capsys.readouterr().out
    assert package.load(here / "part" / FILES[1]).status == "stopped"
    sweep(*GRIDS, "-o", "part", "--dry-run")
    *rows, last = capsys.readouterr().out.splitlines()
    states = zip(("skip", "resume", "run", "run"), itertools.product((1, 2), (0, 1)), strict=True)
    words = [f"k0={k0},seed={seed}.h5 {what} 0 s algorithm.k0={k0} seed={seed}" for what, (k0, seed) in states]
    assert [" ".join(row.split()) for row in rows] == words
    assert re.match(r"4 points; running them takes about \d+ s on one core, a rough estimate from rounds × ", last)
    assert not (here / "part" / FILES[2]).exists()
    sweep(*GRIDS, "-o", "part")
    assert re.search(r"^k0=1,seed=1\.h5  4 rounds \(\d before\)  ", capsys.readouterr().out, re.M)
    alike(here / "whole", here / "part")


def test_what_was_killed_starts_again_and_a_file_of_another_configuration_is_in_the_way(here, capsys):
    sweep(*GRIDS, "-q")
    with h5py.File(here / "results" / FILES[0], "a") as file:
        file.attrs["status"] = "running"  # killed without a checkpoint
    (here / "results" / FILES[1]).write_bytes(b"")  # killed before anything was written
    sweep(*GRIDS)
    assert capsys.readouterr().out.startswith("2 of 4 points are finished already\nk0=1,seed=0.h5  4 rounds")
    assert all(package.load(here / "results" / name).status == "finished" for name in FILES)
    other = [word.replace("rounds=4", "rounds=5") for word in SMALL]
    assert main(["sweep", *other, "--grid", "algorithm.k0=2,3", "--grid", "seed=0:2"]) == 2
    assert "results/k0=2,seed=0.h5 is of another configuration: rounds is 4 there and 5 here" in capsys.readouterr().err
    assert listed(here / "results") == FILES
    assert main(["sweep", *other, "--grid", "algorithm.k0=2", "--grid", "seed=0:2", "--force"]) == 0
    assert package.load(here / "results" / FILES[2]).cr == 5
    (here / "results" / FILES[0]).write_text("no result")
    sweep(*GRIDS, code=2)
    assert f"results/{FILES[0]} is not a result file" in capsys.readouterr().err


def test_a_file_that_another_run_writes_is_left_to_it(here, capsys):
    sweep("--grid", "seed=0:2", "-q")
    with h5py.File(here / "results" / "seed=0.h5", "r+") as file:
        file.attrs["status"] = "running"
        file.flush()
        done = mpifed("sweep", *SMALL, "--grid", "seed=0:2", process=True, cwd=here)
    assert done.code == 0, done.err
    assert "seed=0.h5  being written by another run" in done.out
    assert "1 of 2 finished, 1 being written by other runs" in done.out


def test_data_are_looked_for_before_the_first_point_and_after_the_list_of_a_dry_run(here, capsys, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(here))
    words = ["--grid", "data=linreg-noniid,qot", "--grid", "seed=0:2"]
    for jobs in ("1", "2"):
        assert main(["sweep", "rounds=2", *words, "-j", jobs]) == 2
        err = capsys.readouterr().err
        assert err.startswith('mpifed: 2 of 4 points lack their data, first data=qot,seed=0: data = "qot" ')
        assert err.count("\n") == 1
        assert not listed(here / "results")
    assert main(["sweep", "rounds=2", "--grid", "data=linreg-noniid,qot", "--dry-run"]) == 2
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()] == ["data=qot.h5", "data=linreg-noniid.h5", "2"]
    assert "mpifed: 1 of 2 points lack their data, first data=qot: " in told.err
    # an array job is written: the nodes may have what this machine has not
    assert main(["sweep", "rounds=2", "--grid", "data=linreg-noniid,qot", "--slurm"]) == 1
    told = capsys.readouterr()
    assert told.out == "sbatch results/sweep.sbatch\n"
    assert told.err.startswith("mpifed: on this machine, 1 of 2 points lack their data, first data=qot: ")
    assert listed(here / "results") == ["sweep.sbatch"]


def test_points_that_are_finished_need_no_data(here, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(here / "fed.npz", X=rng.standard_normal((40, 3)), y=rng.standard_normal(40), sizes=[20, 20])
    words = ["data=file", "data.path=fed.npz", "rounds=2", "algorithm=fedavg", "--grid", "seed=0:2"]
    assert main(["sweep", *words]) == 0
    (here / "fed.npz").unlink()
    capsys.readouterr()
    assert main(["sweep", *words]) == 0
    assert capsys.readouterr().out == "2 of 2 points are finished already\n2 of 2 finished\n"


def test_the_summary_says_what_failed_and_equal_failures_once():
    found = points({}, SMALL, ["seed=0:10"])
    tally = SweepTally(found, SweepProgress(None, [point.cost for point in found]))
    lines = []
    for k, point in enumerate(found):
        reason = "a disk is gone" if k == 1 else "f diverges"
        ended = PointEnd(point, FAILED, reason, 0.1) if k else PointEnd(point, FINISHED, "4 rounds", 0.1)
        lines += tally.count_end(ended)
    assert lines == [
        ReportLine("seed=0.h5  4 rounds"),
        ReportLine("seed=1.h5  failed: a disk is gone", False),
        ReportLine("seed=2.h5  failed: f diverges", False),
    ]
    assert list(tally.summary()) == [
        ReportLine("8 points failed: f diverges; first: seed=2", False),
        ReportLine(
            "1 of 10 finished, 9 failed: seed=1; seed=2; seed=3; seed=4; seed=5 and 4 more; run the same command "
            "again to continue",
            False,
        ),
    ]


def test_the_time_left_follows_from_costs_and_what_they_took():
    progress = SweepProgress(None, [1.0, 1.0, 2.0])
    assert progress.head() == "0 of 3"
    progress.count_end(1.0, None)
    assert progress.head() == "1 of 3"
    progress.count_end(1.0, 30.0)
    assert progress.head() == "2 of 3, about 60 s left"
