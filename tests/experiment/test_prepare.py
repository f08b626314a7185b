"""What a rank prepares before round one, and what it refuses there."""

from itertools import pairwise

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.experiment.job import Job
from mpifed.experiment.prepare import housed, prepare
from mpifed.mpi.world import World

STUDY = {"data": {"clients": 9, "features": 4}, "dtype": "float32"}


class Rank(World):
    """One of several ranks, as far as prepare() looks at it."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


def test_clients_live_on_the_ranks_above_zero_and_without_mpi_one_host_has_them_all():
    job = Job(experiment(STUDY))
    parts = [housed(prepare(job, Rank(rank, 4)), job, Rank(rank, 4), "numpy") for rank in range(4)]
    cuts = parts[0].cuts
    assert parts[0].host is None
    assert [(part.host.lo, part.host.hi) for part in parts[1:]] == list(pairwise(cuts))
    assert (cuts[0], cuts[-1]) == (0, 9)
    parts = housed(prepare(job, World()), job, World(), "numpy")
    assert (parts.host.lo, parts.host.hi, parts.setup.m) == (0, 9, 9)
    assert parts.setup.start.dtype == np.float32


def test_more_ranks_than_clients_and_the_server_are_refused():
    with pytest.raises(UserError, match=r"^11 ranks are too many for 9 clients: start at most 10"):
        prepare(Job(experiment(STUDY)), Rank(0, 11))
