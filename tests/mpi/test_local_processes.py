"""How the processes of a run on this machine end."""

import os
import subprocess
import sys
import threading
import time

import pytest

from mpifed.mpi.program_end import Process, find_descendants, find_starters, list_processes, wait_until_read
from tests.helpers.commands import ROOT

TREE = {  # of a rank 12 under Open MPI in a batch job, and of another one that SLURM started
    1: Process(0, "init"),
    2: Process(1, "slurmstepd"),
    3: Process(2, "bash"),
    4: Process(3, "mpirun"),
    5: Process(4, "ssh"),
    6: Process(4, "hydra_pmi_proxy"),
    11: Process(6, "numactl"),
    12: Process(11, "python"),
    13: Process(6, "python"),
    14: Process(2, "python"),
}


@pytest.mark.parametrize(
    ("rank", "starters", "started"),
    [(12, [11, 6, 4], {5, 6, 11, 12, 13}), (13, [6, 4], {5, 6, 11, 12, 13}), (3, [2], set(TREE) - {1, 2})],
)
def test_starters_of_a_rank_go_up_to_its_launcher_and_no_further(rank, starters, started, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: rank)
    assert find_starters(TREE) == starters
    assert find_descendants(starters[-1], TREE) == started


def test_a_process_without_a_launcher_has_no_starters(monkeypatch):
    assert os.getpid() in list_processes()
    monkeypatch.setattr(os, "getpid", lambda: 3)
    assert find_starters({pid: process for pid, process in TREE.items() if pid != 2}) == []


def test_a_launcher_and_all_that_it_started_end_at_once(tmp_path):
    launcher, ids = tmp_path / "mpirun", tmp_path / "ids"
    ending = f"{sys.executable} -c 'from mpifed.mpi.program_end import kill_local_run; kill_local_run(1)'"
    launcher.write_text(f"#!/bin/sh\nsleep 100 &\necho $! > {ids}\n{ending}\nwait\n")
    launcher.chmod(0o755)
    done = subprocess.run([launcher], timeout=30, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == -9
    time.sleep(0.2)
    assert int(ids.read_text()) not in list_processes()


def test_a_message_is_waited_for_until_it_is_read_but_not_for_ever(tmp_path):
    out, into = os.pipe()
    os.write(into, b"last words")
    wait_until_read(into, 0.05)  # nobody reads
    threading.Timer(0.2, lambda: os.read(out, 100)).start()
    wait_until_read(into, 60)
    os.set_blocking(out, False)
    with pytest.raises(BlockingIOError):  # it has been read
        os.read(out, 100)
    with (tmp_path / "log").open("w") as file:
        file.write("last words")
        wait_until_read(file.fileno(), 60)
    os.close(out)
    wait_until_read(into, 60)  # nobody will
    os.close(into)
