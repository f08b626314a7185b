"""A folder of its own for a sweep, and how to run one."""

import itertools
import os
import signal
import sys
import time
from contextlib import contextmanager

import pytest

from mpifed import load
from mpifed.algorithms.fedavg import FedAvg
from mpifed.cli.main import main
from mpifed.core import signals
from tests.helpers.commands import PIPES, background, mpirun
from tests.helpers.killed_runs import content

PLAIN = ["data.clients=6", "data.features=5", "rounds=4"]
SMALL = [*PLAIN, "algorithm=fedavg"]
ENDLESS = ["data.clients=6", "algorithm=fedavg", "stop.gradient=0.0", "rounds=10000000"]
GRIDS = ["--grid", "algorithm.k0=1,2", "--grid", "seed=0:2"]
FILES = [f"k0={k0},seed={seed}.h5" for k0 in (1, 2) for seed in (0, 1)]
OWN = """
from mpifed.algorithms.fedavg import FedAvg
class Mine(FedAvg, tag="mine"):
    def round(self, fed, server):
        if self.k0 == 2:
            raise OSError("a disk is gone")
        return super().round(fed, server)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signals, "stop_signal", "")
    return tmp_path


def sweep(*words, code=0):
    assert main(["sweep", *SMALL, *map(str, words)]) == code


@contextmanager
def signal_in_round(monkeypatch, number):
    """A signal comes in this round of FedAvg, counted over all points from 1."""
    plain = FedAvg.round
    rounds = itertools.count(1)

    def round_(self, fed, server):
        if next(rounds) == number:
            patch.setattr(signals, "stop_signal", "SIGTERM")
        return plain(self, fed, server)

    with monkeypatch.context() as patch:
        patch.setattr(FedAvg, "round", round_)
        yield


@contextmanager
def endless(folder, *words, seeds=5, ranks=None, running=2):
    """A sweep without end, once so many of its points have written rounds; what is left of it is killed."""
    command = [sys.executable, "-m", "mpifed"] if ranks is None else mpirun(ranks, "-m", "mpifed")
    command = [*command, "sweep", *ENDLESS, "--grid", f"seed=0:{seeds}", *words]
    with background(command, **PIPES, cwd=folder) as process:
        try:
            started(process, folder / "results", running)
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def started(process, folder, count):
    """Wait until so many points have written rounds."""
    deadline = time.monotonic() + 30
    while sum(path.stat().st_size > 20_000 for path in folder.glob("*.h5")) < count:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def statuses(folder):
    return {load(path).status for path in folder.glob("*.h5")}


def listed(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".checkpoint")


def alike(one, other, names=FILES):
    """Two folders hold these results with the same bits, and no other."""
    assert [name for name in listed(one) if name.endswith(".h5")] == names
    assert listed(other) == listed(one)
    for name in names:
        assert content(one / name) == content(other / name)
