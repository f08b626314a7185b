"""Points of a sweep on groups of ranks: the same bits, and one message when something goes wrong."""

import os
import signal
from argparse import Namespace
from types import SimpleNamespace

import pytest

import mpifed as package
from mpifed.cli.sweep import parse_layout
from mpifed.core.errors import UserError
from mpifed.mpi import launcher
from mpifed.sweeps.grid import check_ranks, points
from mpifed.sweeps.runner import SweepLayout
from tests.helpers.commands import mpifed
from tests.helpers.killed_runs import children, rank
from tests.sweeps.conftest import FILES, GRIDS, OWN, PLAIN, SMALL, alike, endless, statuses, sweep

EACH = ["--each", "1"]


@pytest.mark.slow
@pytest.mark.parametrize(("each", "ranks", "said"), [(1, 4, ""), (0, 3, ""), (1, 3, "ranks left over: 1 of 3")])
def test_groups_write_the_files_and_bits_of_one_process(here, each, ranks, said):
    sweep(*GRIDS, "-q", "-o", "one")
    done = mpifed("sweep", *SMALL, *GRIDS, "--each", each, "-o", "groups", ranks=ranks, cwd=here)
    assert done.code == 0, done.err
    assert said in done.err
    assert ("left over" in done.err) == bool(said)
    lines = done.out.splitlines()
    assert sorted(line.split()[0] for line in lines[:-1]) == FILES
    assert lines[-1] == "4 of 4 finished"
    alike(here / "one", here / "groups")
    assert {package.load(here / "groups" / name).attrs["ranks"] for name in FILES} == {each + 1}


@pytest.mark.slow
def test_a_point_that_fails_does_so_alone(here):
    words = [*SMALL, "stop.diverged=1.000001", "--grid", "algorithm.step.a=1e-4,1e3,1e4"]
    done = mpifed("sweep", *words, "--each", "1", ranks=4, cwd=here)
    assert done.code == 1
    assert done.err.count("f diverges") == 2
    assert "a=0.0001.h5  4 rounds" in done.out
    assert "mpifed: 1 of 3 finished, 2 failed: a=1" in done.err
    assert package.load(here / "results" / "a=0.0001.h5").status == "finished"


@pytest.mark.parametrize(("values", "ranks"), [("2", 2), pytest.param("1,2", 4, marks=pytest.mark.slow)])
def test_an_error_of_the_program_ends_all_groups_with_one_message(here, values, ranks):
    (here / "mine.py").write_text(OWN.replace("OSError", "MemoryError"))  # no mistake of the class
    words = [*PLAIN, "rounds=1000000", "algorithm=mine.py:Mine", "--grid", f"algorithm.k0={values}"]
    done = mpifed("sweep", *words, "--each", "1", "-q", ranks=ranks, cwd=here)  # within its limit: rounds never end
    assert done.code
    assert done.err.count("has no memory left: a disk is gone") == 1, done.err


@pytest.mark.slow
@pytest.mark.parametrize(("words", "running", "hit"), [([], 1, None), *((EACH, 2, hit) for hit in (None, 0, 2, 3))])
def test_a_signal_to_the_launcher_or_to_any_rank_stops_all_points_after_their_round(here, words, running, hit):
    with endless(here, *words, ranks=4, running=running) as process:
        if hit is None:
            process.send_signal(signal.SIGUSR1)
        else:
            os.kill(next(pid for pid in children(process) if rank(pid) == hit), signal.SIGUSR1)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out.count("after round") == running
    assert "stopped (SIGUSR1 after round" in out
    assert out.splitlines()[-1] == "0 of 5 finished; run the same command again to continue"
    assert statuses(here / "results") == {"stopped"}


def test_a_group_must_not_be_larger_than_all_ranks_or_have_more_hosts_than_clients(monkeypatch):
    monkeypatch.setattr(launcher, "read_launcher", lambda: (2, 0))
    with pytest.raises(UserError, match=r"^--each 2 is wrong: a group has 3 ranks, and there are 2$"):
        parse_layout(Namespace(jobs=None, each=2), SimpleNamespace(size=2))
    assert parse_layout(Namespace(jobs=None, each=1), SimpleNamespace(size=2)) == SweepLayout(None, 1)
    found = points({}, ["data.clients=1"], ["seed=0:2"])
    with pytest.raises(UserError, match=r"^3 ranks are too many for point seed=0 of 1 clients"):
        check_ranks(found, 3)
    check_ranks(found, 2)
    with pytest.raises(UserError, match="--jobs 2 is wrong under mpirun: say --each 1, which gives every point two"):
        parse_layout(Namespace(jobs=2, each=None), SimpleNamespace(size=2))
