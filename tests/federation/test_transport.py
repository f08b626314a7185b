"""The transport to a host in the same process."""

from __future__ import annotations

import numpy as np

from mpifed.federation.request import Request
from mpifed.federation.transport import InProcess, Traffic
from tests.helpers.algorithm_runs import N, Run, build


def test_a_sum_is_finished_and_the_only_host_is_the_slowest():
    run = Run(build("fedavg"))
    transport = InProcess(run.hosts[0])
    rows = transport.send(Request("update", (np.ones(N), 0))).rows
    total = transport.send(Request("update", (np.ones(N), 0), reduce="sum")).rows
    assert total.shape == (N,)
    assert np.allclose(total, rows.sum(axis=0), rtol=1e-12)
    assert transport.report.computing == transport.report.slowest > 0 == transport.mpi


def test_traffic_counts_calls_and_bytes():
    traffic = Traffic()
    traffic.count(8, 0)
    traffic.count(0, 24)
    assert (traffic.calls, traffic.sent, traffic.received) == (2, 8, 24)
