"""Asynchronous runs: who arrives when, what each client started from, and what is computed when."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import Trouble, UserError
from mpifed.core.streams import stream
from mpifed.federation.participation.selection import All, Uniform
from mpifed.federation.request import Request
from mpifed.federation.timing.arrivals import Asynchronous
from tests.helpers.algorithm_runs import Run, build, same
from tests.helpers.devices import system

SLOW = {"speed": {"name": "lognormal", "median": 30, "sigma": 0.8}, "latency": 0.1, "jitter": 0.5}
STEPS = {"k0": 2, "step": {"name": "constant", "a": 0.1}}
CUTS = [(0, 12), (0, 5, 12), (0, 1, 6, 11, 12)]


def flights(sizes, arrivals=1, staleness=None, seed=0, **table):
    """Clients of these sizes, of which one sample takes a second, for FedAvg with one local step."""
    table = {"speed": 1} | table
    devices = system(**table).devices(seed, np.array(sizes), np.zeros(10), FedAvg(k0=1), 1)
    return Asynchronous(arrivals, staleness).flights(devices, seed)


def send(fleet, to=None, x=0.0):
    fleet.send(Request("update", (x,), None if to is None else np.array(to)))


def arrive(fleet, x=0.0):
    """Who arrives; they begin anew."""
    arrived = fleet.arrive()
    send(fleet, arrived, x)
    return arrived.tolist()


def away(options=STEPS, name="fedavg", table=None, **more):
    """FedAvg at work asynchronously, on the twelve clients of a small problem."""
    return Run(build(name, options), system=SLOW, asynchronous={"arrivals": 3} | (table or {}), **more)


def test_the_first_arrive_in_order_of_time_and_the_clock_goes_on_to_the_last_of_them():
    fleet = flights([3, 1, 8, 2], arrivals=2)
    send(fleet)
    assert arrive(fleet) == [1, 3]
    assert fleet.devices.seconds == 2
    assert arrive(fleet) == [0, 1]  # at 3 seconds both: client 1 has begun anew at 2
    assert fleet.devices.seconds == 3
    assert arrive(fleet) == [1, 3]  # both at 4
    assert arrive(fleet) == [0, 1]  # at 6, and so is client 3
    assert fleet.devices.seconds == 6


def test_of_equal_times_those_of_lower_numbers_arrive_first():
    fleet = flights([5] * 6, arrivals=2)
    send(fleet)
    assert [arrive(fleet) for _ in range(4)] == [[0, 1], [2, 3], [4, 5], [0, 1]]
    assert fleet.devices.seconds == 10


def test_the_clock_never_goes_back():
    fleet, clock = flights([5, 1, 1, 40], arrivals=1, staleness=2, jitter=0.7), 0.0
    send(fleet)
    for _ in range(50):
        arrive(fleet)
        assert fleet.devices.seconds >= clock
        clock = fleet.devices.seconds


@pytest.mark.parametrize("bound", [0, 1, 4])
def test_no_upload_is_older_than_the_bound(bound):
    fleet, ages = flights([1, 1, 2, 50, 70], arrivals=2, staleness=bound, jitter=0.3), []
    send(fleet)
    for _ in range(60):
        arrive(fleet)
        ages.append(fleet.ages.max())
    assert max(ages) == bound


def test_a_bound_that_is_not_reached_changes_nothing():
    runs = [flights([1, 2, 3, 2], arrivals=1, staleness=bound, jitter=0.4) for bound in (None, 1000)]
    for fleet in runs:
        send(fleet)
    assert [arrive(runs[0]) for _ in range(200)] == [arrive(runs[1]) for _ in range(200)]


def test_with_a_bound_of_0_the_server_waits_for_all():
    fleet = flights([3, 1, 9], arrivals=1, staleness=0)
    send(fleet)
    assert arrive(fleet) == [0, 1, 2]
    assert fleet.devices.seconds == 9


def test_an_upload_that_is_waited_for_lets_others_wait_in_turn():
    """The one that is too old comes beside the first, not in its place; what has come meanwhile is taken later."""
    fleet = flights([1, 1, 50], arrivals=1, staleness=2)
    send(fleet)
    assert [arrive(fleet) for _ in range(4)] == [[0], [1], [0, 2], [1]]
    assert fleet.devices.seconds == 50


def test_jitter_is_the_client_s_own_at_its_own_count_of_uploads():
    fleet = flights([10, 10, 10], arrivals=1, jitter=0.5)
    factors = [[np.exp(0.5 * stream(0, "system", i, k, 2).standard_normal()) for k in range(3)] for i in range(3)]
    send(fleet, [0, 2])
    assert fleet.due[[0, 2]].tolist() == [10 * factors[0][0], 10 * factors[2][0]]
    first = int(fleet.arrive()[0])
    send(fleet, [first])
    assert fleet.due[first] == 10 * factors[first][0] + 10 * factors[first][1]
    send(fleet, [1])
    assert fleet.due[1] == fleet.devices.seconds + 10 * factors[1][0]


def test_one_request_lets_all_compute_each_from_its_own_start():
    fleet = flights([1, 2, 3, 4], arrivals=2)
    fleet.send(Request("update", (np.arange(3.0), 7), key=(1, 0)))
    arrived = fleet.arrive()
    assert fleet.lacking(arrived)
    everyone = fleet.request()
    assert (everyone.method, everyone.to, everyone.rest, fleet.at_once) == ("update", None, True, 4)
    assert [part.tolist() for part in everyone.args] == [[[1, 0]], [[0, 1, 2]], [7]]
    fleet.send(Request("update", (np.ones(3), 8), arrived, key=(2, 0)))
    assert fleet.arrive().tolist() == [0, 2]
    assert fleet.lacking(np.array([0]))
    assert not fleet.lacking(np.array([2]))
    later = fleet.request()
    assert later.to.tolist() == arrived.tolist() == [0, 1]
    assert later.each.tolist() == [0, 0]
    assert [part.tolist() for part in later.args] == [[[2, 0]], [[1, 1, 1]], [8]]


@pytest.mark.parametrize("options", [STEPS, STEPS | {"aggregate": "all"}, STEPS | {"batch_size": 3}])
def test_when_clients_compute_changes_no_bit(options):
    """Computing at once what is sent, as an event loop does, gives the same as waiting until it is needed."""
    lazy, eager = away(options), away(options)
    begin = eager.fed.flights.send

    def at_once(request):
        begin(request)
        eager.fed._ask(eager.fed.flights.request())

    eager.fed.flights.send = at_once
    for _ in range(12):
        assert lazy.rounds(1).tobytes() == eager.rounds(1).tobytes()
        assert same(lazy.states(), eager.states())
    assert lazy.fed.flights.count.max() > 3


@pytest.mark.parametrize("cuts", CUTS[1:])
@pytest.mark.parametrize("name", ["fedavg", "fednova"])
def test_hosts_do_not_change_a_bit(name, cuts):
    options = STEPS | {"batch_size": 4}
    one, other = away(options, name), away(options, name, cuts=cuts)
    assert one.rounds(12).tobytes() == other.rounds(12).tobytes()
    assert one.fed.computing > 0


def test_a_bound_of_0_is_the_synchronous_run_with_all_clients():
    waiting = away(table={"staleness": 0}).rounds(6)
    plain = Run(build("fedavg", STEPS), selection=All(), system=SLOW)
    np.testing.assert_allclose(waiting, plain.rounds(6), rtol=1e-12)


def test_a_client_has_the_state_of_its_last_arrival_until_it_arrives_again():
    run = away(STEPS | {"aggregate": "all"})
    before = run.states().w
    run.rounds(1)
    after, arrived = run.states().w, run.fed.selected
    assert run.fed.flights.at_once == run.m > len(arrived)
    assert np.flatnonzero((after != before).any(axis=1)).tolist() == arrived.tolist()


def test_what_is_sent_counts_as_a_download_and_what_arrives_as_an_upload():
    run, ledger = away(), None
    size, sent, come = 8 * run.n, 0, 0
    for _ in range(7):
        sent += run.m if run.fed.flights.free() is None else len(run.fed.flights.free())
        run.rounds(1)
        come += len(run.fed.selected)
        ledger = run.fed.ledger
        assert (ledger.downloads, ledger.bytes_down, ledger.bits_down) == (sent, size * sent, 8 * size * sent)
        assert (ledger.uploads, ledger.bytes_up, ledger.bits_up) == (come, size * come, 8 * size * come)
    assert ledger.exchanges == 7
    assert run.fed.times_selected.sum() == come == run.fed.flights.count.sum()


def test_weights_multiply_uploads_and_cost_nothing():
    run = away()
    run.fed.begin(1)
    run.fed.send(run.algorithm.update, run.server.x, 0, to=run.fed.select(run.server.x))
    arrived = run.fed.arrivals()
    weights = np.array([0.5, 2.0, 0.25])
    total = run.fed.sum(of=arrived, weights=weights)
    down = run.fed.ledger.bytes_down
    rows = run.fed.call(run.algorithm.update, run.server.x, 0, to=arrived)
    np.testing.assert_allclose(total, weights @ rows, rtol=1e-12)
    assert down == 8 * run.n * run.m
    assert run.fed.staleness.tolist() == [0, 0, 0]


@pytest.mark.parametrize("selection", [All(), Uniform(count=4)], ids=["all", "some"])
def test_uploads_of_synchronous_rounds_can_have_weights_too(selection):
    run = Run(build("fedavg", STEPS), cuts=CUTS[1], selection=selection)
    run.fed.begin(1)
    selected = run.fed.select(run.server.x)
    run.fed.send(run.algorithm.update, run.server.x, 0, to=selected)
    arrived = run.fed.arrivals()
    count = run.m if selected is None else len(selected)
    assert run.fed.staleness.tolist() == [0] * count
    weights = 1.0 + np.arange(count)
    mean = run.fed.mean(of=arrived, weights=weights)
    ledger = run.fed.ledger
    assert (ledger.downloads, ledger.uploads, ledger.bytes_up) == (count, count, 80 * count)
    rows = run.fed.call(run.algorithm.update, run.server.x, 0, to=selected)
    np.testing.assert_allclose(mean, weights @ rows / count, rtol=1e-12)


def refused(call, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        call()


def test_who_is_under_way_cannot_be_called():
    run = away()
    run.rounds(2)
    refused(lambda: run.fed.call(run.algorithm.update, run.server.x, 0), "update calls clients that are under way")
    refused(
        lambda: run.fed.send(run.algorithm.update, run.server.x, 0), "update calls clients that are under way: in an"
    )
    free = run.fed.flights.free()
    run.fed.call(run.algorithm.update, run.server.x, 0, to=free)
    assert run.fed.evaluate(run.server.x)["objective"] > 0


@pytest.mark.parametrize("more", [{}, {"system": SLOW, "asynchronous": {"arrivals": 2}}], ids=["rounds", "away"])
def test_uploads_are_asked_for_once_after_send_and_arrivals(more):
    run = Run(build("fedavg", STEPS), **more)
    fed, x = run.fed, run.server.x
    fed.begin(1)
    refused(fed.arrivals, "no upload can arrive: fed.send must be called before fed.arrivals")
    fed.send(run.algorithm.update, x, 0, to=fed.select(x))
    refused(fed.mean, "uploads are asked for without a client method: fed.send and fed.arrivals must come before")
    arrived = fed.arrivals()
    fed.mean(of=arrived)
    refused(lambda: fed.mean(of=arrived), "uploads are asked for without a client method")


def test_all_clients_begin_with_the_same_method():
    fleet = flights([1, 2])
    send(fleet, [0])
    refused(
        lambda: fleet.send(Request("other", (), np.array([1]))), "other cannot be sent while update is under way: the"
    )


def test_own_rows_cannot_be_sent():
    run = away()
    run.fed.begin(1)
    call = lambda: run.fed.send(run.algorithm.update, run.server.x, 0, each=np.ones(run.m))  # noqa: E731
    refused(call, "update cannot be sent with each = … in an asynchronous run: use an argument")


def test_there_must_be_as_many_clients_as_arrive():
    refused(lambda: flights([1, 2], arrivals=3), "asynchronous.arrivals = 3 is wrong: it must be between 1 and the 2")


def test_every_client_takes_some_time():
    refused(
        lambda: flights([1, 2], speed=None),
        "asynchronous.arrivals = 1 is wrong: with this [system] client 0 takes no time and would always arrive first, "
        "so give system.speed, system.latency or a bandwidth",
    )
    flights([1, 2], speed=None, latency=1)


@pytest.mark.parametrize(
    ("key", "value", "text"), [("dropout", 0.1, "0.1"), ("deadline", 2.0, "2.0"), ("least", 2, "2")]
)
def test_rounds_that_end_without_some_clients_are_refused(key, value, text):
    table = {key: value}
    devices = system(speed=1, **table).devices(0, np.array([1, 2, 3]), np.zeros(1), FedAvg(), 3)
    refused(lambda: Asynchronous(2).flights(devices, 0), f"system.{key} = {text} is wrong with [asynchronous]: there")


def test_a_reply_that_is_not_finite_names_the_client_and_its_method():
    run = away(STEPS | {"step": {"name": "constant", "a": 1e200}})
    told = r"the reply of client \d+ is not finite in round \d, method update"
    with np.errstate(all="ignore"), pytest.raises(Trouble, match=told):
        run.rounds(9)


def test_the_order_of_arrivals_needs_no_computing():
    run = away()
    fleet = run.fed.flights
    run.fed.begin(1)
    run.fed.send(run.algorithm.update, run.server.x, 0)
    assert len(fleet.arrive()) == 3
    assert run.fed.computing == 0
    assert run.hosts[0].resting.uploads == {}


@pytest.mark.parametrize("more", [{}, {"system": SLOW, "asynchronous": {"arrivals": 3}}], ids=["rounds", "away"])
def test_single_uploads_can_be_asked_for_too(more):
    run = Run(build("fednova", STEPS), **more)
    run.fed.begin(1)
    run.fed.send(run.algorithm.normalised, run.server.x, 0, to=run.fed.select(run.server.x))
    arrived = run.fed.arrivals()
    directions, norms = run.fed.call(of=arrived)
    right, lengths = run.fed.call(run.algorithm.normalised, run.server.x, 0, to=arrived)
    np.testing.assert_allclose(directions, right, rtol=1e-12)
    np.testing.assert_allclose(norms, lengths, rtol=1e-12)
    assert directions.shape == (len(arrived), run.n)


def test_last_uploads_are_those_that_have_arrived():
    """Those of clients that have computed and are still under way do not count yet."""
    run, last = away(STEPS | {"aggregate": "all"}), np.zeros((12, 10))
    for _ in range(5):
        run.rounds(1)
        last[run.fed.selected] = run.states().w[run.fed.selected]
        np.testing.assert_allclose(run.server.x, last.mean(axis=0), rtol=1e-12)


def test_compressed_uploads_are_charged_when_they_arrive():
    run = away(compress={"up": {"name": "topk", "k": 2}})
    size = run.hosts[0].uploads.up.bits(run.n, 8)
    run.rounds(4)
    assert run.fed.ledger.bits_up == size * run.fed.ledger.uploads == size * 12
    assert run.fed.ledger.bits_down == 64 * run.n * run.fed.ledger.downloads
