"""A program that fails or ends on one rank ends on all, and one rank says why; how processes on this machine end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from mpifed.mpi.program_end import Process, find_descendants, find_starters, list_processes, wait_until_read
from tests.experiment.conftest import chosen
from tests.helpers.commands import PIPES, ROOT, background, execute, mpirun

FAILING = """
import asyncio, os
from typing import NamedTuple
import numpy as np
import mpifed

RANK = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))

class Own(BaseException):
    pass

def fail(place, rank, kind=Own):
    if (place, rank) == (os.environ.get("PLACE"), RANK):
        raise kind("here")

class Client(NamedTuple):
    pass

class Server(NamedTuple):
    x: np.ndarray

class Mine(mpifed.extend.Algorithm):
    def init_client(self, f):
        fail("join", 2, GeneratorExit)
        return Client()

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        fail("round", 0, asyncio.CancelledError)
        return Server(server.x - 0.1 * fed.mean(self.gradient, server.x))

    def gradient(self, f, client, x):
        fail("gradient", 1, asyncio.CancelledError)
        return client, f.grad(x)

class Source(mpifed.extend.Data):
    def load(self, seed, dtype):
        fail("load", 1)
        return mpifed.data.Gaussian(clients=6, samples=60, features=5).load(seed, dtype)

class Beside(mpifed.extend.Plugin, mpifed.extend.Callback):
    def transforms(self, setup, fed):
        fail("transforms", 2)
        return []

    def on_start(self, fed):
        fail("on_start", 0)
        return {}
"""
PROGRAM = """
import os, sys, time
import mpifed

rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
quick = {"data.clients": 6, "data.features": 5, "rounds": 2, "kernels": "numpy", "problem": "least-squares"}

def again():
    mpifed.run(quick, algorithm="gd", progress=False)

"""
PLACES = """
own = {"algorithm": "failing.py:Mine", "data": "failing.py:Source", "plugins": ["failing.py:Beside"]}
for place in ("join", "round", "gradient", "load", "transforms", "on_start", "nowhere"):
    os.environ["PLACE"] = place
    try:
        mpifed.run({**own, **quick, "data": own["data"], "data.clients": None, "data.features": None}, progress=False)
    except mpifed.UserError as mistake:
        if rank == 0:
            print(mistake, flush=True)
if rank == 1:
    raise LookupError("in my own code")
again()
"""
TOLD = [
    "init_client of failing.py fails in line 14: GeneratorExit: here",
    "round of failing.py fails in line 14: CancelledError: here",
    "the client method gradient of failing.py fails in line 14: CancelledError: here",
    "load of failing.py fails in line 14: Own: here",
    "Beside.transforms of failing.py fails in line 14: Own: here",
    "Beside.on_start of failing.py fails in line 14: Own: here",
]
ENDS = {  # what follows PROGRAM: what standard error says once
    "all with the same error after a run": (  # rank 0 may be late on a busy machine
        "again()\nfrom mpifed.mpi import program_end\nprogram_end.SAME = 20\nprint(undefined)",
        "NameError: name 'undefined'",
    ),
    "one before the first run": ("if rank == 1:\n    raise LookupError('mine')\nagain()", "LookupError: mine"),
    "one leaves between runs": (
        "again()\nif rank == 2:\n    sys.exit(3)\nagain()",
        "mpifed: rank 2 has left the program, and the others wait for it in a run: every rank must make the same calls",
    ),
}
ABSENT = """
import os, runpy, sys
rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
if rank == "1":
    os._exit(0)
if rank == "0":  # lines of two ranks may be mixed
    print("waits", flush=True)
sys.argv[:] = ["mpifed", "run", "-q", "rounds=2", "kernels=numpy"]
runpy.run_module("mpifed", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "failing.py").write_text(FAILING, "utf-8")
    return tmp_path


def program(folder, text):
    path = folder / "program.py"
    path.write_text(PROGRAM + text, "utf-8")
    return execute(mpirun(3, path), cwd=folder)


def test_an_error_of_any_kind_at_any_place_of_a_run_is_a_sentence_and_one_of_the_program_ends_it(here):
    done = program(here, PLACES)
    assert done.out.splitlines() == TOLD
    assert done.code
    assert done.err.count("LookupError: in my own code") == 1


@pytest.mark.parametrize("how", chosen(ENDS, "all with the same error after a run", "one leaves between runs"))
def test_a_program_that_ends_on_one_rank_ends_on_all_and_one_says_why(how, here):
    text, told = ENDS[how]
    done = program(here, text)
    assert done.code
    assert done.err.count(told) == 1, done.err


def test_ranks_that_end_a_program_one_after_the_other_are_not_taken_for_lost(here):
    done = program(here, "again()\nif rank == 0:\n    time.sleep(0.5)\nprint('done', flush=True)")
    assert (done.code, done.out.count("done"), done.err) == (0, 3, "")


def test_a_signal_ends_ranks_that_wait_for_one_that_never_starts(here):
    (here / "absent.py").write_text(ABSENT, "utf-8")
    with background(mpirun(3, here / "absent.py"), **PIPES, cwd=here) as process:
        try:
            assert process.stdout.readline() == "waits\n"
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode


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
