"""Points of a sweep in several processes: the same bits, and what happens when processes are killed or interrupted."""

import os
import re
import signal
import time
from multiprocessing.connection import Pipe
from pathlib import Path

import pytest

import mpifed as package
from mpifed.cli.main import main
from mpifed.core import signals
from mpifed.mpi.world import World
from mpifed.sweeps import runner
from mpifed.sweeps.grid import points
from mpifed.sweeps.runner import SweepLayout
from mpifed.sweeps.runs import SweepProgress
from mpifed.sweeps.workers import PipeProgress, process_count
from tests.sweeps.conftest import ENDLESS, FILES, GRIDS, OWN, PLAIN, SMALL, alike, endless, started, statuses, sweep

TWO = ("-j", "2")


def test_two_processes_write_the_files_and_bits_of_one(here, capsys):
    sweep(*GRIDS, "-q", "-j", "1", "-o", "one")
    sweep(*GRIDS, "-j", "2", "-o", "two")
    out = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in out[:-1]) == FILES
    assert out[-1] == "4 of 4 finished"
    alike(here / "one", here / "two")
    first, second = (package.load(here / folder / FILES[0]).attrs["command_line"] for folder in ("one", "two"))
    assert first == second


def test_processes_are_as_many_as_there_are_points_cores_without_threads_and_work_is_worth(monkeypatch):
    cheap = points({}, SMALL, ["seed=0:4"])
    dear = [point._replace(cost=100.0) for point in cheap]
    assert process_count(cheap, None) == 1
    assert process_count(dear, None) == min(4, len(os.sched_getaffinity(0)))
    assert process_count(cheap, 3) == 3
    assert process_count(cheap, 9) == 4
    assert process_count([], None) == 1
    dear *= 25
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert process_count(dear, None) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    assert process_count(dear, None) == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_errors_of_a_class_from_a_file_fail_their_points_alone_and_equal_ones_are_told_once(here, jobs, capfd):
    (here / "mine.py").write_text(OWN)
    assert main(["sweep", *PLAIN, "algorithm=mine.py:Mine", *GRIDS, "-j", jobs, "-q"]) == 1
    out, err = capfd.readouterr()  # of the processes too
    assert out == ""
    said = r"of mine.py fails in line \d+: OSError: a disk is gone"
    first = re.match(rf"mpifed: (k0=2,seed=\d).h5  \w+: .*{said}", err)[1]
    assert re.search(f"mpifed: 2 points failed: .*{said}; first: {first}\n", err)
    assert err.count("a disk is gone") == 2
    again = "run the same command again to continue"
    assert re.search(rf"mpifed: 2 of 4 finished, 2 failed: {first}; k0=2,seed=\d; {again}\n$", err)


def workers(pid):
    """The processes that a process has started."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def gone(pids, seconds=10.0):
    """Whether all these processes end within so many seconds."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_killed_process_fails_its_point_alone_and_another_takes_its_place(here):
    with endless(here, *TWO, seeds=4) as process:
        pids = workers(process.pid)
        os.kill(pids[0], signal.SIGKILL)
        started(process, here / "results", 3)
        after = workers(process.pid)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert len(after) == 2
    assert set(after) & set(pids) == {pids[1]}
    assert process.returncode == 1
    assert err.count("failed: its process was killed by SIGKILL") == 1
    assert out.count("stopped (SIGTERM after round") == 2
    assert "0 of 4 finished, 1 failed: seed=" in err
    assert gone(after)


@pytest.mark.parametrize("name", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGTERM"])
def test_a_signal_stops_all_points_after_their_round_and_leaves_no_process(here, name):
    with endless(here, *TWO, seeds=4) as process:
        pids = workers(process.pid)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.count(f"stopped ({name} after round") == 2
    assert out.splitlines()[-1] == "0 of 4 finished; run the same command again to continue"
    assert gone(pids)
    assert statuses(here / "results") == {"stopped"}
    assert len(list((here / "results").glob("*.checkpoint"))) == 2


@pytest.mark.slow
def test_a_second_signal_ends_all_processes_at_once(here):
    with endless(here, *TWO, seeds=4) as process:
        pids = workers(process.pid)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)  # they do not finish their round
        process.send_signal(signal.SIGINT)
        time.sleep(signals.REPEAT_SECONDS + 0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 128 + signal.SIGINT
        assert gone(pids, 5)


@pytest.mark.slow
def test_processes_stop_when_the_one_that_started_them_is_gone(here):
    with endless(here, *TWO, seeds=4) as process:
        pids = workers(process.pid)
        process.kill()
        process.wait()
        assert gone(pids)
    assert statuses(here / "results") == {"stopped"}


def test_a_process_that_can_tell_nobody_of_its_rounds_stops(here):
    mine, theirs = Pipe()
    theirs.close()
    PipeProgress(mine).note("a round")
    assert signals.stop_signal == "SIGTERM"


def interrupt():
    raise KeyboardInterrupt


def kill_all():
    (kill,) = signals.before_exit  # as a second signal does
    kill()


def running(folder, act):
    """The lines of a sweep of two points without end in processes of this one, which acts so when both run."""
    found = points({}, ENDLESS, ["seed=0:2"])
    progress = SweepProgress(None, [point.cost for point in found])
    seen = set()

    def show(*_):
        before, _ = len(seen), seen.add(progress.name)
        if before < len(seen) == 2:  # both points have shown a round
            act()

    progress.show = show
    return runner.sweep(found, folder, World(), False, progress, SweepLayout(jobs=2))


@pytest.mark.slow
def test_an_interrupt_of_a_program_ends_the_processes(here):
    """As in a notebook: KeyboardInterrupt, because nothing listens for signals."""
    lines = running(here, interrupt)
    before = set(workers(os.getpid()))
    with pytest.raises(KeyboardInterrupt):
        list(lines)
    assert set(workers(os.getpid())) <= before
    assert statuses(here) == {"stopped"}


def test_what_a_second_signal_calls_kills_all_processes_and_their_points_fail(here):
    before = set(workers(os.getpid()))
    text = "\n".join(line.text for line in running(here, kill_all))
    assert text.count("failed: its process was killed by SIGKILL") == 2
    assert "0 of 2 finished, 2 failed: seed=" in text
    assert set(workers(os.getpid())) <= before
    assert not signals.before_exit
