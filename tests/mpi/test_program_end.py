"""A program that fails, or ends, on one of several ranks ends on all of them, and one rank says why."""

import contextlib
import os
import signal
import time

import pytest

from tests.helpers.commands import PIPES, background, execute, mpirun

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


@pytest.mark.parametrize("how", ENDS)
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
