"""The server's side: verbs, rounds, transports, and what goes wrong on a host."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core import signals
from mpifed.core.errors import Trouble, UserError
from mpifed.federation.request import HostReport, Request
from mpifed.federation.transport import InProcess, Traffic
from tests.helpers.algorithm_runs import M, N, Run, build


def test_the_start_is_charged_to_no_ledger_and_a_round_is():
    run = Run(build("fedgia"))
    assert set(vars(run.fed.ledger).values()) == {0}
    run.rounds(1)
    assert (run.fed.ledger.exchanges, run.fed.ledger.uploads) == (1, M)


def test_verbs_agree_with_the_rows_that_call_brings():
    run = Run(build("fedavg"), cuts=(0, 5, M))
    update, x, to = run.algorithm.update, np.ones(N), np.array([1, 4, 5, 11])
    run.fed.begin(1)
    rows = run.fed.call(update, x, 0, to=to)
    assert rows.shape == (4, N)
    assert run.fed.sum(update, x, 0, to=to) == pytest.approx(rows.sum(axis=0), rel=1e-12)
    assert run.fed.mean(update, x, 0, to=to) == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert np.array_equal(run.fed.max(update, x, 0, to=to), rows.max(axis=0))


def test_selected_clients_are_counted_and_masked():
    run = Run(build("fedavg"))
    run.rounds(3)
    assert run.fed.times_selected.sum() == 3 * run.fed.cohort
    assert np.array_equal(np.flatnonzero(run.fed.mask(run.fed.selected)), run.fed.selected)
    assert run.fed.mask(None).all()


def test_numbers_that_are_not_finite_end_the_run_with_client_round_and_option():
    run = Run(build("fedavg", {"step": {"name": "constant", "a": 1e200}}))
    ended = pytest.raises(Trouble, match=r"of client \d+ is not finite in round \d.*look at algorithm\.step$")
    with np.errstate(over="ignore", invalid="ignore"), ended:
        run.rounds(50)


def test_the_stop_signal_is_that_of_the_server_or_of_a_host(monkeypatch):
    run = Run(build("fedavg"))
    assert run.fed.stop_signal == ""
    run.fed._transport.report = HostReport(signal=signals.HANDLED.index("SIGUSR1") + 1)
    assert run.fed.stop_signal == "SIGUSR1"
    monkeypatch.setattr(signals, "stop_signal", "SIGTERM")
    assert run.fed.stop_signal == "SIGTERM"


def test_in_one_process_a_sum_is_finished_and_the_only_host_is_the_slowest():
    transport = InProcess(Run(build("fedavg")).hosts[0])
    rows = transport.send(Request("update", (np.ones(N), 0))).rows
    total = transport.send(Request("update", (np.ones(N), 0), reduce="sum")).rows
    assert total.shape == (N,)
    assert np.allclose(total, rows.sum(axis=0), rtol=1e-12)
    assert transport.report.computing == transport.report.slowest > 0 == transport.mpi


def test_traffic_counts_calls_and_bytes():
    traffic = Traffic()
    traffic.count(8, 0)
    traffic.count(0, 24, 3)
    assert (traffic.calls, traffic.sent, traffic.received, traffic.messages) == (2, 8, 24, 3)


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
    with pytest.raises(UserError, match=r"method argument writes .* x\.copy\(\) \(.*test_server.py, line \d+\)$"):
        transport.send(Request("argument", (x,)))
    try:
        transport.send(Request("row", each=own))  # of some clients it is a copy
    except UserError:
        assert run.hosts[0].sorted
    assert (x == 1).all()
    assert (own == 1).all()
    x += 1  # the server's own array can still be changed
