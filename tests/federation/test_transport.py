"""The transport to a host in the same process."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.federation.request import Request
from mpifed.federation.transport import InProcess
from tests.helpers.algorithm_runs import M, N, Run, build


def test_a_sum_is_finished_and_the_only_host_is_the_slowest():
    transport = InProcess(Run(build("fedavg")).hosts[0])
    rows = transport.send(Request("update", (np.ones(N), 0))).rows
    total = transport.send(Request("update", (np.ones(N), 0), reduce="sum")).rows
    assert total.shape == (N,)
    assert np.allclose(total, rows.sum(axis=0), rtol=1e-12)
    assert transport.report.computing == transport.report.slowest > 0 == transport.mpi


class Careless:
    def argument(self, f, client, x):
        x *= 2
        return client, x

    def row(self, f, client, own):
        own[0] = 7
        return client, own


def test_a_client_method_that_writes_into_what_it_received_is_told_to_copy():
    run, x, own = Run(build("fedavg")), np.ones(N), np.ones((M, N))
    run.hosts[0].algorithm, transport = Careless(), InProcess(run.hosts[0])
    with pytest.raises(UserError, match=r"method argument writes .* x\.copy\(\) \(.*test_transport.py, line \d+\)$"):
        transport.send(Request("argument", (x,)))
    try:
        transport.send(Request("row", each=own))  # of some clients it is a copy
    except UserError:
        assert run.hosts[0].sorted
    assert (x == 1).all()
    assert (own == 1).all()
    x += 1  # the server's own array can still be changed
