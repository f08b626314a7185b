"""Sums over the ranks: the same bits on every way to rank 0, and as few messages there as the way promises."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from mpifed.core.errors import RunError
from mpifed.experiment import config
from mpifed.extend import Algorithm
from mpifed.features.masks.feature import MaskedSums
from mpifed.features.masks.masks import Masks
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transport import InProcess
from mpifed.mpi.channel import Server, Service
from mpifed.mpi.plan import BIG

pytestmark = pytest.mark.mpi(min_size=2)

M = 29
EXPERIMENT = config.experiment({"data": {"name": "linreg-noniid", "clients": M, "features": 3}})
DATA = EXPERIMENT.data.load(0, "float64")
WAYS = ("auto", "star", "tree", "nodes", "slices")
CALLED = (None, np.arange(M), np.array([0, 3, 4, 17, 28]), np.array([11]))
LENGTHS = (1, 7, BIG // 8 + 5)


@cache
def wild(n):
    """(M, n) numbers of all sizes."""
    rng = np.random.default_rng(n)
    return rng.standard_normal((M, n)) * 10.0 ** rng.integers(-12, 12, (M, n))


class Client(NamedTuple):
    """No state."""


class Noise(Algorithm):
    """Clients that reply with numbers of all sizes, or fail."""

    def init_server(self, fed):
        raise AssertionError("no run is made")

    round = init_server

    def init_client(self, f):
        return Client()

    def echo(self, f, client, own):
        return client, own + f.ids[:, None]

    def numbers(self, f, client, x, failing=-1):
        if (f.ids == failing).any():
            raise ZeroDivisionError(f"client {failing}")
        return client, wild(len(x))[f.ids]


NUMBERS = Noise().numbers
SETUP = RunSpec(EXPERIMENT.problem, Noise(), 0, M, np.zeros(3))
MASKED = Masks(sums="masked", fraction=9)


def host(lo, hi, masks=None):
    made = Host(SETUP, DATA, lo, hi)
    if masks is not None:
        made.add_transform(MaskedSums(SETUP, masks))
    made.join()
    return made


def federation(transport, reproducible=True, masks=None):
    selector = EXPERIMENT.selection.selector(0, M, 1)
    made = Federation(transport, SETUP, selector, DATA.sizes, reproducible=reproducible)
    if masks is not None:
        made.add_transform(MaskedSums(SETUP, masks, made.schedule))
    return made


def served(world, way, nodes=None, cuts=None, masks=None):
    """At rank 0 once the federation of the ranks on ``nodes``, and its server; never on the others, which serve it."""
    if nodes is not None:
        world.nodes = lambda: nodes
    cuts = sums.rank_offsets(DATA.sizes, world.size - 1) if cuts is None else cuts
    if world.rank:
        one = host(cuts[world.rank - 1], cuts[world.rank], masks)
        assert Service(world, cuts, "float64", way).serve(one) is not None
        return
    server = Server(world, cuts, "float64", way)
    yield federation(server, masks=masks), server
    server.stop()


def placements(ranks):
    """On which node each rank is: two ranks a node, and in turn on three nodes."""
    return [rank // 2 * 2 for rank in range(ranks)], [rank % 3 for rank in range(ranks)]


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


every = pytest.mark.parametrize("way", WAYS)


@pytest.mark.parametrize(
    ("way", "uneven"),
    [*((way, False) for way in WAYS), ("tree", True), *(slow(way, True) for way in WAYS if way != "tree")],
)
def test_the_way_does_not_change_a_bit(way, uneven, world):
    """Also of clients that are not called, and where ranks have many subtrees."""
    cuts = [*range(world.size - 1), M] if uneven else None
    alone = federation(InProcess(host(0, M)))
    for nodes in placements(world.size) if way == "nodes" else [None]:
        for fed, server in served(world, way, nodes, cuts):
            for n in (7, *LENGTHS):
                for to in CALLED:
                    for reduced in ("sum", "max", "call"):
                        found, right = (getattr(f, reduced)(NUMBERS, np.zeros(n), to=to) for f in (fed, alone))
                        assert found.tobytes() == right.tobytes()
            plain = federation(server, reproducible=False)
            for n in LENGTHS:
                found, right = (f.sum(NUMBERS, np.zeros(n)) for f in (plain, alone))
                np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-3)


def test_large_own_rows_are_scattered_and_rows_come_back_in_client_order(world):
    for fed, _ in served(world, "auto"):
        for to in CALLED:
            ids = np.arange(M) if to is None else to
            rows = np.random.default_rng(1).normal(size=(len(ids), 6))
            np.testing.assert_array_equal(fed.call(Noise().echo, to=to, each=rows), rows + ids[:, None])


@every
def test_neither_does_it_change_a_bit_of_a_masked_sum(way, world):
    """In whole multiples of 2^-9, added up as integers: also the sum over one client, and over none of some host's."""
    alone = federation(InProcess(host(0, M, MASKED)), masks=MASKED)
    for fed, _ in served(world, way, masks=MASKED):
        for n in LENGTHS:
            for to in CALLED[1:]:
                found = fed.sum(NUMBERS, np.zeros(n), to=to)
                assert found.tobytes() == alone.sum(NUMBERS, np.zeros(n), to=to).tobytes()
                exact = np.rint(np.ldexp(wild(n)[to], 9)).astype(np.int64).sum(axis=0)
                assert np.array_equal(found, exact.astype(float) / 2**9)


@every
def test_the_report_has_the_slowest_and_all_and_a_result_is_not_overwritten_by_the_next_one(way, world):
    for fed, _ in served(world, way):
        for n in (1000, *LENGTHS):
            fed.begin(1)
            first = fed.sum(NUMBERS, np.zeros(n))
            assert 0 < fed.slowest <= fed.computing <= (world.size - 1) * fed.slowest
            before = first.copy()
            fed.sum(NUMBERS, np.zeros(n), to=np.array([1]))
            assert first.tobytes() == before.tobytes()


@pytest.mark.parametrize("way", ["star", "tree"])
def test_rank_0_receives_as_many_messages_as_the_way_promises(way, world):
    """P - 1, on a tree ⌈lg(P-1)⌉ + 1; twice as many where reports and long vectors travel apart."""
    promised = world.size - 1 if way == "star" else math.ceil(math.log2(world.size - 1)) + 1
    for fed, server in served(world, way):
        for n, messages in ((100, promised), (BIG, 2 * promised)):
            fed.sum(NUMBERS, np.zeros(n))
            before = server.traffic.messages
            fed.sum(NUMBERS, np.zeros(n))
            assert server.traffic.messages - before == messages


@every
def test_an_error_on_a_host_ends_the_request_with_one_message(way, world):
    for fed, _ in served(world, way):
        for n in LENGTHS:
            for failing in (M - 1, 0):
                fed.sum(NUMBERS, np.zeros(n), -1)
                with pytest.raises(RunError, match=f"rank {1 if failing == 0 else world.size - 1}.*client {failing}"):
                    fed.sum(NUMBERS, np.zeros(n), failing)
        expected = federation(InProcess(host(0, M))).sum(NUMBERS, np.zeros(7), -1)
        assert fed.sum(NUMBERS, np.zeros(7), -1).tobytes() == expected.tobytes()  # no message was left over
