"""Hosts and the transport to one in the same process: replies, reports, and numbers that are not finite."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from mpifed.core import signals
from mpifed.core.errors import UserError
from mpifed.experiment.housing import make_save_service
from mpifed.features.selection_laws.feature import Greedy
from mpifed.features.selection_laws.importance import Importance
from mpifed.federation.method import find_method
from mpifed.federation.participation.selection import Biased
from mpifed.federation.request import EVALUATE, EVALUATE_SUMS, SAVE, HostReport, Request, add_report
from mpifed.federation.transport import InProcess
from tests.helpers.algorithm_cases import SETTINGS, start
from tests.helpers.algorithm_runs import M, N, Run, build, same

UPDATE = Request("update", (np.zeros(N), 0))


class Client:
    """Client methods that tests look through."""

    def __init__(self):
        self.seen = []

    def echo(self, f, client, own):
        return client, own + f.ids[:, None]

    def blocks(self, f, client):
        self.seen.append(f.block)
        return client, f.zeros()


@pytest.fixture
def host():
    run = Run(build("fedavg"))
    run.rounds(1)
    return run.hosts[0]


def test_a_request_is_charged_to_computing_or_to_evaluating_and_the_report_has_the_signal_of_this_rank(
    host, monkeypatch
):
    _, report = host.handle(UPDATE)
    assert report.computing > 0 == report.evaluating == report.signal
    assert host.computed >= report.computing
    before = host.computed
    _, report = host.handle(Request(EVALUATE_SUMS, (np.zeros(N),), reduce="sum", request_type=EVALUATE))
    assert report.evaluating > 0 == report.computing
    assert host.computed == before
    monkeypatch.setattr(signals, "stop_signal", "SIGUSR1")
    assert signals.signal_name(host.handle(UPDATE)[1].signal) == "SIGUSR1"


def test_the_fault_is_the_first_client_whose_numbers_are_not_finite(host):
    own, to = np.zeros((M, N)), np.array([2, 9, 11])
    own[[7, 9], 3] = np.nan
    client = Client()
    host.find_method = partial(find_method, client)
    asked = {M - 7: Request("echo", each=own), M - 9: Request("echo", to=to, each=own[to])}
    for fault, request in (asked | {0: Request("echo", each=np.ones((M, N)))}).items():
        assert host.handle(request)[1].fault == fault


@pytest.mark.parametrize("reduce", ["rows", "sum", "plain sum", "max"])
@pytest.mark.parametrize("to", [None, np.array([0, 5])])
def test_the_excuse_of_a_failed_request_has_as_many_rows_as_the_reply_would_have(host, to, reduce):
    request = Request("update", (np.zeros(N), 0), to=to, reduce=reduce)
    reply, report = host.error_reply(request)
    assert len(reply.rows) == len(host.handle(request)[0].rows)
    assert report == HostReport(failed=1)


def test_of_several_hosts_the_slowest_the_total_and_the_first_faulty_client_are_reported():
    one = np.array(HostReport(2.0, 0, 2.0, 0.5, 0, M - 7))
    add_report(one, np.array(HostReport(3.0, 1, 3.0, 0.25, 15, 0)))
    add_report(one, np.array(HostReport(1.0, 1, 1.0, 0.0, 10, M - 4)))
    assert HostReport(*one.tolist()) == HostReport(6.0, 2, 3.0, 0.5, 15, M - 4)


@pytest.mark.parametrize("to", [None, np.array([0, 3, 4, 10]), np.array([7])])
def test_rows_are_in_client_order_on_any_number_of_hosts(to):
    cuts, rows = (0, 2, 7, M), []
    ids = np.arange(M) if to is None else to
    own = np.arange(len(ids) * N, dtype=float).reshape(len(ids), N)
    for host, (lo, hi) in zip(Run(build("fedavg"), cuts=cuts).hosts, pairwise(cuts), strict=True):
        host.find_method = partial(find_method, Client())
        mine = (lo <= ids) & (ids < hi)
        rows.append(host.handle(Request("echo", to=to, each=own[mine]))[0].rows.reshape(-1, N))
    assert np.array_equal(np.concatenate(rows), own + ids[:, None])


def test_a_block_that_is_called_whole_is_not_copied():
    (host,) = Run(build("fedavg"), block_bytes=1).hosts  # one client a block
    client = Client()
    host.find_method = partial(find_method, client)
    host.handle(Request("blocks", to=np.array([1, 4, 5])))
    assert len(client.seen) == 3
    assert all(any(block is own for own in host.blocks) for block in client.seen)


def test_a_disk_that_refuses_a_checkpoint_is_the_number_of_its_error(host, tmp_path):
    for folder, refused in (("", False), ("nowhere", True)):
        host.services[SAVE[0]] = make_save_service(
            host, lambda serial, folder=folder: tmp_path / folder / f"{serial}.npz"
        )
        reply, _ = host.handle(Request("save", (3,), reduce="max", request_type=SAVE))
        assert (reply.rows > 0) == refused
    assert (tmp_path / "3.npz").exists()


CASES = [
    ("fedavg", {"selection": Importance(count=4)}),
    ("flame", {"selection": Biased(count=4, candidates=9, batch_size=0)}),
    ("feddcd", {"selection": Greedy(count=4, candidates=9, uniform=2)}),
    ("fedavg", {"compress": {"up": {"name": "randk", "k": 3}, "feedback": "error"}}),
    ("fedgia", {"compress": {"up": {"name": "randseqk", "k": 4}, "down": {"name": "topk", "k": 3}}}),
    ("fedopt", {"compress": {"up": {"name": "dither"}, "feedback": "none"}}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_bits_and_charges_do_not_depend_on_how_many_hosts_there_are(name, options):
    algorithm = build(name, SETTINGS[name])
    runs = [start(algorithm, cuts=cuts, **options) for cuts in (None, (0, 1, 2, 11, M), range(M + 1))]
    assert len({run.rounds(4).tobytes() for run in runs}) == 1
    for run in runs:
        assert same(run.states(), runs[0].states())
        assert vars(run.fed.ledger) == vars(runs[0].fed.ledger)
        assert np.array_equal(run.fed.times_selected, runs[0].fed.times_selected)


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
    run.hosts[0].find_method = partial(find_method, Careless())
    transport = InProcess(run.hosts[0])
    with pytest.raises(UserError, match=r"method argument writes .* x\.copy\(\) \(.*test_host.py, line \d+\)$"):
        transport.send(Request("argument", (x,)))
    try:
        transport.send(Request("row", each=own))  # of some clients it is a copy
    except UserError:
        assert run.hosts[0].sorted
    assert (x == 1).all()
    assert (own == 1).all()
    x += 1  # the server's own array can still be changed
