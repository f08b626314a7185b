"""Messages between server and hosts, on real ranks."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from mpi4py import MPI

from mpifed import config, sums
from mpifed.federation import Federation, InProcess
from mpifed.host import Host, Request
from mpifed.message import join, pack, unpack
from mpifed.mpi import Channel, Server, World, serve

pytestmark = pytest.mark.mpi(min_size=3)


def test_a_message_survives_the_journey():
    request = Request("update", (np.arange(7.0), 3, 0.1), np.array([1, 5]), np.array([True, False]), "sum", "z", (4, 2), True)
    again, head = unpack(join(*pack(request)))
    assert head.each == "here"
    for before, after in zip(request, again, strict=True):
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)
        elif isinstance(before, tuple) and before and isinstance(before[0], np.ndarray):
            np.testing.assert_array_equal(before[0], after[0])
            assert before[1:] == after[1:]
        else:
            assert before == after


def test_broadcasts_of_any_length_in_any_order_arrive():
    channel = Channel(World(), [0, 1])
    rng = np.random.default_rng(0)
    for length in [16, 4000, 70_000, 70_000, 500, 70_000, 3_000_000, 16, 16]:
        message = rng.integers(0, 255, length).astype(np.uint8)
        message[:8].view(np.int64)[0] = length
        got = channel.broadcast(message.copy() if channel.comm.rank == 0 else None)
        np.testing.assert_array_equal(got[:length], message)


def test_in_steady_state_a_request_is_one_broadcast_and_one_gather():
    world = World()
    setup = config.experiment({"data": {"name": "linreg-noniid", "clients": 9, "features": 30}})
    data = setup.data.load(0, "float64")
    cuts = sums.cuts(data.sizes, world.size - 1)
    parts = (setup.problem, setup.algorithm)
    if world.rank:
        lo, hi = cuts[world.rank - 1], cuts[world.rank]
        host = Host(data, *parts, lo, hi, np.zeros(data.n), "float64", 0)
        host.join()
        serve(world, cuts, host)
        return
    server = Server(world, cuts, [sums.nodes(a, b, data.m) for a, b in pairwise(cuts)], "float64")
    draws = setup.selection.draws(0, data.m, 10)
    fed = Federation(server, setup.problem, draws, 0, data.sizes, np.zeros(data.n), "float64")
    state = setup.algorithm.start(fed)
    calls = []
    for round in range(1, 6):
        fed.begin(round)
        before = server.traffic.calls
        state = setup.algorithm.round(fed, state)
        calls.append(server.traffic.calls - before)
    server.stop()
    assert calls[1:] == [2, 2, 2, 2]

    host = Host(data, *parts, 0, data.m, np.zeros(data.n), "float64", 0)
    host.join()
    alone = Federation(InProcess(host), setup.problem, draws, 0, data.sizes, np.zeros(data.n), "float64")
    expected = setup.algorithm.start(alone)
    for round in range(1, 6):
        alone.begin(round)
        expected = setup.algorithm.round(alone, expected)
    np.testing.assert_array_equal(state.x, expected.x)


def test_large_own_rows_are_scattered_and_rows_come_back_in_client_order():
    world = World()
    setup = config.experiment({"data": {"name": "linreg-noniid", "clients": 11, "features": 6}})
    data = setup.data.load(0, "float64")
    cuts = sums.cuts(data.sizes, world.size - 1)

    class Echo:
        def echo(self, f, client, own):
            return client, own + f.ids[:, None]

    if world.rank:
        host = Host(data, setup.problem, Echo(), cuts[world.rank - 1], cuts[world.rank], np.zeros(data.n), "float64", 0)
        host.state = ()
        host.state = type("Nothing", (tuple,), {"__new__": lambda cls, *fields: tuple.__new__(cls, fields)})()
        serve(world, cuts, host)
        return
    server = Server(world, cuts, [sums.nodes(a, b, data.m) for a, b in pairwise(cuts)], "float64")
    fed = Federation(server, setup.problem, setup.selection.draws(0, data.m, 10), 0, data.sizes, np.zeros(data.n), "float64")
    for to in (None, np.array([0, 3, 4, 10]), np.array([7])):
        ids = np.arange(11) if to is None else to
        rows = np.random.default_rng(1).normal(size=(len(ids), 6))
        np.testing.assert_array_equal(fed.call(Echo().echo, to=to, each=rows), rows + ids[:, None])
    server.stop()


def test_every_rank_hears_of_the_first_mistake():
    world = World()
    assert world.agree(f"rank {world.rank}" if world.rank else None) == "rank 1"
    assert world.agree(None) is None
    assert MPI.COMM_WORLD.size == world.size
