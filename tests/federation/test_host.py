"""Hosts: what they reply, what they report of a request, and what they say of numbers that are not finite."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mpifed.core import signals
from mpifed.federation.request import EVALUATE, SAVE, HostReport, Request, together
from tests.helpers.algorithm_runs import M, N, Run, build, same


@pytest.fixture
def host():
    run = Run(build("fedavg"))
    run.rounds(1)
    return run.hosts[0]


def test_a_request_is_charged_to_computing_or_to_evaluating(host):
    _, report = host.handle(Request("update", (np.zeros(N), 0)))
    assert report.computing > 0 == report.evaluating
    assert host.computed >= report.computing
    before = host.computed
    _, report = host.handle(Request(EVALUATE, (np.zeros(N),), reduce="sum", evaluation=True))
    assert report.evaluating > 0 == report.computing
    assert host.computed == before


def test_the_report_has_the_signal_of_this_rank(host, monkeypatch):
    request = Request("update", (np.zeros(N), 0))
    assert host.handle(request)[1].signal == 0
    monkeypatch.setattr(signals, "stop_signal", "SIGUSR1")
    assert signals.name(host.handle(request)[1].signal) == "SIGUSR1"


def test_the_fault_is_the_first_client_whose_numbers_are_not_finite(host):
    own = np.zeros((M, N))
    own[[7, 9], 3] = np.nan
    host.algorithm = Echo()
    _, report = host.handle(Request("echo", each=own))
    assert report.fault == M - 7
    to = np.array([2, 9, 11])
    _, report = host.handle(Request("echo", to=to, each=own[to]))
    assert report.fault == M - 9
    assert host.handle(Request("echo", each=np.ones((M, N))))[1].fault == 0


def test_the_excuse_of_a_failed_request_has_as_many_rows_as_the_reply_would_have(host):
    for to in (None, np.array([0, 5])):
        for reduce in ("rows", "sum", "plain sum", "max"):
            request = Request("update", (np.zeros(N), 0), to=to, reduce=reduce)
            reply, report = host.excuse(request)
            assert len(reply.rows) == len(host.handle(request)[0].rows)
            assert report == HostReport(failed=1)


def test_of_several_hosts_the_slowest_the_total_and_the_first_faulty_client_are_reported():
    one = np.array(HostReport(2.0, 0, 2.0, 0.5, 0, M - 7))
    together(one, np.array(HostReport(3.0, 1, 3.0, 0.25, 15, 0)))
    together(one, np.array(HostReport(1.0, 1, 1.0, 0.0, 10, M - 4)))
    assert HostReport(*one.tolist()) == HostReport(6.0, 2, 3.0, 0.5, 15, M - 4)


@pytest.mark.parametrize("to", [None, np.array([0, 3, 4, 10]), np.array([7])])
def test_rows_are_in_client_order_on_any_number_of_hosts(to):
    cuts = (0, 2, 7, M)
    hosts = Run(build("fedavg"), cuts=cuts).hosts
    ids = np.arange(M) if to is None else to
    own = np.arange(len(ids) * N, dtype=float).reshape(len(ids), N)
    rows = []
    for host, (lo, hi) in zip(hosts, pairwise(cuts), strict=True):
        host.algorithm = Echo()
        mine = (lo <= ids) & (ids < hi)
        rows.append(host.handle(Request("echo", to=to, each=own[mine]))[0].rows.reshape(-1, N))
    assert np.array_equal(np.concatenate(rows), own + ids[:, None])


@pytest.mark.parametrize("problem", ["least-squares", "softmax"])
@pytest.mark.parametrize("name", ["fedavg", "fedgia", "scaffold"])
@pytest.mark.parametrize("cuts", [(0, M), (0, 2, 7, M)])
def test_the_size_of_blocks_does_not_change_a_bit(name, problem, cuts):
    runs = [Run(build(name), problem, cuts=cuts, block_bytes=size) for size in (1, 2000, 1 << 30)]
    counts = [sum(len(host.blocks) for host in run.hosts) for run in runs]
    assert M == counts[0] > counts[1] >= counts[2]
    for run in runs:
        run.rounds(4)
    assert same([runs[0].server.x], [runs[1].server.x])
    assert same([runs[0].server.x], [runs[2].server.x])


def test_a_block_that_is_called_whole_is_not_copied():
    (host,) = Run(build("fedavg"), block_bytes=1).hosts  # one client a block
    host.algorithm = Blocks()
    host.handle(Request("blocks", to=np.array([1, 4, 5])))
    assert len(host.algorithm.seen) == 3
    assert all(any(block is own for own in host.blocks) for block in host.algorithm.seen)


def test_a_disk_that_refuses_a_checkpoint_is_the_number_of_its_error(host, tmp_path):
    host.checkpoint = lambda serial: tmp_path / f"{serial}.npz"
    assert host.handle(Request(SAVE, (3,), reduce="max", evaluation=True))[0].rows == 0
    assert (tmp_path / "3.npz").exists()
    host.checkpoint = lambda serial: tmp_path / "nowhere" / f"{serial}.npz"
    assert host.handle(Request(SAVE, (4,), reduce="max", evaluation=True))[0].rows > 0


class Echo:
    """A method whose clients send back their own row plus their number."""

    def echo(self, f, client, own):
        return client, own + f.ids[:, None]


class Blocks:
    """Notes the blocks that it is called with."""

    def __init__(self):
        self.seen = []

    def blocks(self, f, client):
        self.seen.append(f.block)
        return client, f.zeros()
