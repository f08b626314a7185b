"""Messages between server and hosts, on real ranks, which agree on mistakes and on signals."""

import time

import numpy as np
import pytest
from mpi4py import MPI

from mpifed.core import signals
from mpifed.core.errors import RunError
from mpifed.experiment import config
from mpifed.experiment.config import Job
from mpifed.experiment.run import start
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, ReplyLayout, Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transport import InProcess
from mpifed.mpi import communicator
from mpifed.mpi.channel import Server, Service
from mpifed.mpi.plan import MOST
from tests.helpers.requests import REQUESTS, equal

pytestmark = pytest.mark.mpi(min_size=3)


def test_requests_of_any_kind_in_any_order_arrive(world):
    """Also when there are more kinds than plans that are kept."""
    rng = np.random.default_rng(0)
    some, others = rng.integers(0, len(REQUESTS), 60), rng.integers(0, len(REQUESTS), 20)
    order = [*range(len(REQUESTS)), *some, *[-n for n in range(1, 300)], *others]
    sent = [REQUESTS[k] if k >= 0 else Request("many", (np.arange(-k),)) for k in order]
    if world.rank == 0:
        server = Server(world, [0, 5, 10], "float64")
        for request in sent:
            server.broadcast(request)
        assert len(server.plans.by_number) <= MOST
    else:
        service = Service(world, [0, 5, 10], "float64")
        for request in sent:
            assert equal(service.receive()[1], request)


class Slow:
    """The host of client ``lo``, which takes a while."""

    dtype = np.dtype(float)

    def __init__(self, lo):
        self.lo, self.hi = lo, lo + 1

    def handle(self, request):
        time.sleep(0.3)
        return Reply(np.ones((1, 3)), ReplyLayout(((3,),))), HostReport(computing=0.3, slowest=0.3)


@pytest.mark.parametrize("crowded", [True, False])
def test_a_server_that_shares_its_core_naps_from_the_first_request_of_a_kind_on(crowded, world, monkeypatch):
    cuts = list(range(world.size))
    if world.rank:
        Service(world, cuts, "float64").serve(Slow(world.rank - 1))
        return
    server = Server(world, cuts, "float64")
    server.shares_cores = crowded
    naps, sleep = [], time.sleep
    monkeypatch.setattr(communicator.time, "sleep", lambda seconds: (naps.append(seconds), sleep(seconds)))
    reply = server.send(Request("slow", reduce="max"))
    server.stop(collect=False)
    assert np.array_equal(reply.rows.ravel(), np.ones(3))
    assert bool(naps) == crowded
    assert not naps or max(naps) <= communicator.LONGEST_NAP


def test_in_steady_state_a_request_is_one_broadcast_and_one_gather(world):
    setup = config.experiment({"data": {"name": "linreg-noniid", "clients": 9, "features": 30}})
    data = setup.data.load(0, "float64")
    cuts = sums.rank_offsets(data.sizes, world.size - 1)
    agreed = RunSpec(setup.problem, setup.algorithm, 0, data.m, np.zeros(data.n))
    if world.rank:
        lo, hi = cuts[world.rank - 1], cuts[world.rank]
        host = Host(agreed, data, lo, hi)
        host.join()
        Service(world, cuts, "float64").serve(host)
        return
    server, host = Server(world, cuts, "float64"), Host(agreed, data, 0, data.m)
    host.join()
    models = []
    for transport in (server, InProcess(host)):
        fed = Federation(transport, agreed, setup.selection.selector(0, data.m, 10), data.sizes)
        state = setup.algorithm.init_server(fed)
        calls = []
        for round in range(1, 6):
            fed.begin(round)
            before = server.traffic.calls
            state = setup.algorithm.round(fed, state)
            calls.append(server.traffic.calls - before)
        assert calls[1:] == ([2, 2, 2, 2] if transport is server else [0, 0, 0, 0])
        models.append(state.x)
    server.stop()
    np.testing.assert_array_equal(*models)


def test_a_signal_that_one_client_rank_gets_ends_the_run_by_its_name(world, monkeypatch):
    setup = config.experiment({"data": {"clients": 9, "features": 5}, "stop": {"gradient": 0.0}})
    monkeypatch.setattr(signals, "stop_signal", "SIGUSR1" if world.rank == 2 else "")
    recorder = start(Job(setup), world)
    if world.first:
        assert recorder.result().stop_reason == "SIGUSR1 after round 0"


def on_full_disk(world):
    with world.agreeing():
        if world.rank == 1:
            raise RunError("the disk of rank 1 is full")


def test_every_rank_hears_of_the_first_mistake(world):
    assert world.agree(f"rank {world.rank}" if world.rank else None) == "rank 1"
    assert world.agree(None) is None
    with pytest.raises(RunError, match=r"^the disk of rank 1 is full$"):
        on_full_disk(world)
    assert MPI.COMM_WORLD.size == world.size
