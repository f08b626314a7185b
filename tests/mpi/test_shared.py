"""Long arrays of requests: once on a machine where it allows that, broadcast where not; always the same bits."""

import os
import sys

import numpy as np
import pytest

from mpifed.federation.request import Request
from mpifed.mpi import plan, shared
from mpifed.mpi.channel import Server, Service
from mpifed.mpi.plan import MessagePlan, make_form
from mpifed.mpi.shared import LongArrays
from tests.helpers.requests import equal

pytestmark = [
    pytest.mark.mpi(min_size=3),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files in memory are there on Linux"),
]
N = 50_000  # numbers: 400 KB


def sent(world, memory, x):
    """What hosts find of an array that rank 0 sends."""
    request = Request("update", (x,))
    here = MessagePlan(0, make_form(request))
    memory.spread(here, here.write(request) if world.rank == 0 else None)
    found = here.read().args[0]
    assert not found.flags.writeable
    return found if world.rank else x


def pairs(comm):
    """Ranks in pairs, as if two were on every machine."""
    return comm.Split(comm.rank // 2, comm.rank)


def last_alone(comm):
    """All ranks but the last one on a machine."""
    return comm.Split(comm.rank == comm.size - 1, comm.rank)


def all_alone(comm):
    """Every rank on its own machine."""
    return comm.Split(comm.rank)


@pytest.mark.parametrize("neighbours", [shared.split_by_machine, pairs, last_alone, all_alone])
def test_an_array_arrives_and_can_only_be_read(world, monkeypatch, neighbours):
    monkeypatch.setattr(shared, "split_by_machine", neighbours)
    memory = LongArrays(world.comm, sharing=True)
    for k in (1, 3, 2):  # a longer one takes more room, a shorter one finds it
        x = np.arange(k * N) / 7.0
        found = sent(world, memory, x)
        np.testing.assert_array_equal(found, x)
        world.comm.Barrier()  # all have replied
    assert memory.sharing == (neighbours is not all_alone)
    assert memory.shared == 3 * x.nbytes // 2 * memory.sharing


def test_a_machine_has_it_once(world):
    memory = LongArrays(world.comm, sharing=True)
    found = sent(world, memory, np.zeros(N))
    world.comm.Barrier()
    if world.rank == 0:
        memory.room.view(float)[5] = 7.0
    world.comm.Barrier()
    assert world.rank == 0 or found[5] == 7.0


def lacking(*_, **__):
    raise OSError


REFUSALS = {
    "no files in memory": (os, "memfd_create", lacking),
    "too little memory": (os, "posix_fallocate", lacking),
    "may not look at another process": (shared, "locate_file", lambda file: ("/proc/0/fd/0", (0, 0))),
    "other process numbers": (shared, "locate_file", lambda file: (f"/proc/self/fd/{file}", (0, 0))),
    "no room for a mapping": (shared.mmap, "mmap", lacking),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("where", ["first", "last", "all"])
def test_where_one_rank_cannot_share_all_ranks_broadcast(world, monkeypatch, name, where):
    if where == "all" or world.rank == (0 if where == "first" else world.size - 1):
        monkeypatch.setattr(*REFUSALS[name])
    memory = LongArrays(world.comm, sharing=True)
    for k in (1, 2):
        x = np.arange(k * N) / 7.0
        found = sent(world, memory, x)
        np.testing.assert_array_equal(found, x)
        world.comm.Barrier()
    refused = where != "last" or name == "no room for a mapping"  # the last rank makes no file
    assert memory.sharing != refused


def test_numbers_among_long_arrays_arrive(world, monkeypatch):
    monkeypatch.setattr(plan, "BIG", 1)
    sent = [Request("update", (np.arange(k + 1.0), k, np.arange(5), 0.5), key=(k, 0)) for k in (3, 9, 3)]
    channel = (Service if world.rank else Server)(world, [0, 5, 10], "float64")
    for request in sent:
        if world.rank == 0:
            channel.broadcast(request)
        else:
            assert equal(channel.receive()[1], request)
        world.comm.Barrier()
