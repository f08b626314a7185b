"""Messages between server and hosts, on real ranks."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

from mpifed.core import signals
from mpifed.experiment import config
from mpifed.experiment.job import Job
from mpifed.experiment.run import start
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.request import Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.transport import InProcess
from mpifed.mpi.channel import Server, Service, serve
from mpifed.mpi.communicator import Communicator
from mpifed.mpi.plan import MOST, Plan, form

pytestmark = pytest.mark.mpi(min_size=3)


REQUESTS = [
    Request(
        "update",
        (np.arange(7.0), 3, 0.1, None, True),
        np.array([1, 5]),
        np.array([True, False]),
        "sum",
        "z",
        None,
        (4, 2),
    ),
    Request("update", (np.arange(20_000.0), np.arange(7, dtype=np.float32), -2), reduce="plain sum", key=(1, 0)),
    Request("bound"),
    Request(
        "update",
        (np.arange(7.0), 4, 0.2, None, False),
        np.array([2, 8]),
        np.array([False, True]),
        "sum",
        "z",
        None,
        (5, 0),
    ),
    Request("evaluate", (np.ones(7),), reduce="max", evaluation=True),
]


def equal(one, other):
    """Of two requests, or of parts of them."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.method)
def test_a_message_survives_the_journey(request_):
    there, here = (Plan(3, form(request_), 10) for _ in range(2))
    apart = there.write(request_)
    here.message[:] = there.message
    for mine, theirs in zip(here.apart, apart, strict=True):
        mine[...] = theirs
    assert equal(here.read(), request_)


def test_requests_of_any_kind_in_any_order_arrive():
    """Also when there are more kinds than plans that are kept."""
    world = Communicator()
    rng = np.random.default_rng(0)
    order = [*rng.integers(0, len(REQUESTS), 60), *[-n for n in range(1, 300)], *rng.integers(0, len(REQUESTS), 20)]
    sent = [REQUESTS[k] if k >= 0 else Request("many", (np.arange(-k),)) for k in order]
    if world.rank == 0:
        server = Server(world, [0, 5, 10], "float64")
        for request in sent:
            server.broadcast(request)
        assert len(server.plans.numbered) <= MOST
    else:
        service = Service(world, [0, 5, 10], "float64")
        for request in sent:
            assert equal(service.receive()[1], request)


def test_in_steady_state_a_request_is_one_broadcast_and_one_gather():
    world = Communicator()
    setup = config.experiment({"data": {"name": "linreg-noniid", "clients": 9, "features": 30}})
    data = setup.data.load(0, "float64")
    cuts = sums.cuts(data.sizes, world.size - 1)
    agreed = Setup(setup.problem, setup.algorithm, 0, data.m, np.zeros(data.n))
    if world.rank:
        lo, hi = cuts[world.rank - 1], cuts[world.rank]
        host = Host(agreed, data, lo, hi)
        host.join()
        serve(world, cuts, host)
        return
    server = Server(world, cuts, "float64")
    selector = setup.selection.selector(0, data.m, 10)
    fed = Federation(server, agreed, selector, data.sizes)
    state = setup.algorithm.start(fed)
    calls = []
    for round in range(1, 6):
        fed.begin(round)
        before = server.traffic.calls
        state = setup.algorithm.round(fed, state)
        calls.append(server.traffic.calls - before)
    server.stop()
    assert calls[1:] == [2, 2, 2, 2]

    host = Host(agreed, data, 0, data.m)
    host.join()
    alone = Federation(InProcess(host), agreed, selector, data.sizes)
    expected = setup.algorithm.start(alone)
    for round in range(1, 6):
        alone.begin(round)
        expected = setup.algorithm.round(alone, expected)
    np.testing.assert_array_equal(state.x, expected.x)


def test_large_own_rows_are_scattered_and_rows_come_back_in_client_order():
    world = Communicator()
    setup = config.experiment({"data": {"name": "linreg-noniid", "clients": 11, "features": 6}})
    data = setup.data.load(0, "float64")
    cuts = sums.cuts(data.sizes, world.size - 1)

    class Echo:
        personal, watches = False, ()

        def echo(self, f, client, own):
            return client, own + f.ids[:, None]

    agreed = Setup(setup.problem, Echo(), 0, data.m, np.zeros(data.n))
    if world.rank:
        host = Host(agreed, data, cuts[world.rank - 1], cuts[world.rank])
        host.state = ()
        host.state = type("Nothing", (tuple,), {"__new__": lambda cls, *fields: tuple.__new__(cls, fields)})()
        serve(world, cuts, host)
        return
    server = Server(world, cuts, "float64")
    fed = Federation(server, agreed, setup.selection.selector(0, data.m, 10), data.sizes)
    for to in (None, np.array([0, 3, 4, 10]), np.array([7])):
        ids = np.arange(11) if to is None else to
        rows = np.random.default_rng(1).normal(size=(len(ids), 6))
        np.testing.assert_array_equal(fed.call(Echo().echo, to=to, each=rows), rows + ids[:, None])
    server.stop()


def test_a_signal_that_one_client_rank_gets_ends_the_run_by_its_name(monkeypatch):
    world = Communicator()
    setup = config.experiment({"data": {"clients": 9, "features": 5}, "stop": {"gradient": 0.0}})
    monkeypatch.setattr(signals, "stop_signal", "SIGUSR1" if world.rank == 2 else "")
    recorder = start(Job(setup), world)
    if world.first:
        assert recorder.result().stop_reason == "SIGUSR1 after round 0"


def test_every_rank_hears_of_the_first_mistake():
    world = Communicator()
    assert world.agree(f"rank {world.rank}" if world.rank else None) == "rank 1"
    assert world.agree(None) is None
    assert MPI.COMM_WORLD.size == world.size
