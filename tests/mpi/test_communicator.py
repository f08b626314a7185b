"""Ranks agree on mistakes and on signals."""

import pytest
from mpi4py import MPI

from mpifed.core import signals
from mpifed.experiment import config
from mpifed.experiment.job import Job
from mpifed.experiment.run import start

pytestmark = pytest.mark.mpi(min_size=3)


def test_a_signal_that_one_client_rank_gets_ends_the_run_by_its_name(world, monkeypatch):
    setup = config.experiment({"data": {"clients": 9, "features": 5}, "stop": {"gradient": 0.0}})
    monkeypatch.setattr(signals, "stop_signal", "SIGUSR1" if world.rank == 2 else "")
    recorder = start(Job(setup), world)
    if world.first:
        assert recorder.result().stop_reason == "SIGUSR1 after round 0"


def test_every_rank_hears_of_the_first_mistake(world):
    assert world.agree(f"rank {world.rank}" if world.rank else None) == "rank 1"
    assert world.agree(None) is None
    assert MPI.COMM_WORLD.size == world.size
