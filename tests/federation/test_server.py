"""The server's side: verbs, rounds and what goes wrong on a host."""

import numpy as np
import pytest

from mpifed.core import signals
from mpifed.core.errors import Trouble
from mpifed.federation.request import HostReport
from tests.helpers.algorithm_runs import M, N, Run, build


def test_the_start_is_charged_to_no_ledger_and_a_round_is_and_selected_clients_are_counted():
    run = Run(build("fedgia"))
    assert set(vars(run.fed.ledger).values()) == {0}
    run.rounds(1)
    assert (run.fed.ledger.exchanges, run.fed.ledger.uploads) == (1, M)
    run.rounds(2)
    assert run.fed.times_selected.sum() == 3 * run.fed.cohort
    assert np.array_equal(np.flatnonzero(run.fed.mask(run.fed.selected)), run.fed.selected)
    assert run.fed.mask(None).all()


def test_verbs_agree_with_the_rows_that_call_brings():
    run = Run(build("fedavg"), cuts=(0, 5, M))
    update, x, to = run.algorithm.update, np.ones(N), np.array([1, 4, 5, 11])
    run.fed.begin(1)
    rows = run.fed.call(update, x, 0, to=to)
    assert rows.shape == (4, N)
    assert run.fed.sum(update, x, 0, to=to) == pytest.approx(rows.sum(axis=0), rel=1e-12)
    assert run.fed.mean(update, x, 0, to=to) == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert np.array_equal(run.fed.max(update, x, 0, to=to), rows.max(axis=0))


@pytest.mark.parametrize("options", [{}, {"system": {"speed": 30, "jitter": 0.5}, "asynchronous": {}}], ids=str)
def test_numbers_that_are_not_finite_end_the_run_with_client_round_method_and_option(options):
    run = Run(build("fedavg", {"step": {"name": "constant", "a": 1e200}}), **options)
    told = r"of client \d+ is not finite in round \d, method update: .*look at algorithm\.step$"
    with np.errstate(all="ignore"), pytest.raises(Trouble, match=told):
        run.rounds(50)


def test_the_stop_signal_is_that_of_the_server_or_of_a_host(monkeypatch):
    run = Run(build("fedavg"))
    assert run.fed.stop_signal == ""
    run.fed._transport.report = HostReport(signal=signals.HANDLED.index("SIGUSR1") + 1)
    assert run.fed.stop_signal == "SIGUSR1"
    monkeypatch.setattr(signals, "stop_signal", "SIGTERM")
    assert run.fed.stop_signal == "SIGTERM"
