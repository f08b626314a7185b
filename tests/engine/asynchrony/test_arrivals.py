"""Asynchronous runs: who arrives when, what each client started from, and what is computed when."""

import re

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.engine.asynchrony.arrivals import Arrivals
from mpifed.features.asynchronous import Asynchronous
from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.federation.request import CALL, REST, Request
from mpifed.federation.transform import MessageCost
from tests.helpers.algorithm_runs import Run, build, same
from tests.helpers.devices import devices

SLOW = {"speed": {"name": "lognormal", "median": 30, "sigma": 0.8}, "latency": 0.1, "jitter": 0.5}
STEPS = {"k0": 2, "step": {"name": "constant", "a": 0.1}}


def fleet_of(sizes, arrivals=1, staleness=None, **table):
    """Clients of these sizes, of which one sample takes a second, for FedAvg with one local step."""
    fleet = Arrivals(Asynchronous(arrivals, staleness), devices(sizes, **({"speed": 1} | table)))
    fleet.begin(1)
    return fleet


def send(fleet, to=None, *args, method="update", key=(0, 0)):
    fleet.send(Request(method, args, None if to is None else np.array(to), key=key), MessageCost())


def begun(*sizes, **options):
    """The same, all of them sent a model."""
    fleet = fleet_of(sizes, **options)
    send(fleet)
    return fleet


def arrive(fleet):
    """Who arrives, and when; they begin anew."""
    arrived = fleet.arrivals()
    fleet.begin(fleet.round + 1)
    send(fleet, arrived)
    return arrived.tolist()


def away(options=STEPS, name="fedavg", table=None, **more):
    """FedAvg at work asynchronously, on the twelve clients of a small problem."""
    return Run(build(name, options), system=SLOW, asynchronous={"arrivals": 3} | (table or {}), **more)


def refused(call, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        call()


ORDERS = {  # sizes, options; who arrives in each round, and the seconds after it
    "two of them; client 1 begins anew at 2": (
        ([3, 1, 8, 2], {"arrivals": 2}),
        [([1, 3], 2), ([0, 1], 3), ([1, 3], 4), ([0, 1], 6)],
    ),
    "equal times": (([5] * 6, {"arrivals": 2}), [([0, 1], 5), ([2, 3], 5), ([4, 5], 5), ([0, 1], 10)]),
    "a bound of 0 waits for all": (([3, 1, 9], {"staleness": 0}), [([0, 1, 2], 9)]),
    "who is too old comes beside the first, and what has come meanwhile later": (
        ([1, 1, 50], {"staleness": 2}),
        [([0], 1), ([1], 1), ([0, 2], 50), ([1], 50)],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_first_arrive_in_order_of_time_and_number_and_the_clock_goes_on_to_the_last_of_them(name):
    (sizes, options), rounds = ORDERS[name]
    fleet = begun(*sizes, **options)
    assert [(arrive(fleet), fleet.seconds) for _ in rounds] == rounds


@pytest.mark.parametrize("bound", [0, 1, 4])
def test_no_upload_is_older_than_the_bound_the_clock_never_goes_back_and_a_bound_out_of_reach_changes_nothing(bound):
    fleet = begun(1, 1, 2, 50, 70, arrivals=2, staleness=bound, jitter=0.7)
    found = [(arrive(fleet), fleet.seconds, fleet.ages.max()) for _ in range(60)]
    _, times, ages = zip(*found, strict=True)
    assert max(ages) == bound
    assert list(times) == sorted(times)
    one, other = (begun(1, 2, 3, 2, staleness=bound, jitter=0.4) for bound in (None, 1000))
    assert [arrive(one) for _ in range(200)] == [arrive(other) for _ in range(200)]


def test_jitter_is_the_client_s_own_at_its_own_count_of_uploads():
    fleet = fleet_of([10, 10, 10], jitter=0.5)
    factors = [[np.exp(0.5 * stream(0, "system", i, k, 2).standard_normal()) for k in range(3)] for i in range(3)]
    send(fleet, [0, 2])
    assert fleet.due[[0, 2]].tolist() == [10 * factors[0][0], 10 * factors[2][0]]
    first = int(fleet.arrivals()[0])
    send(fleet, [first])
    assert fleet.due[first] == 10 * factors[first][0] + 10 * factors[first][1]
    send(fleet, [1])
    assert fleet.due[1] == fleet.seconds + 10 * factors[1][0]


def test_one_request_lets_all_compute_each_from_its_own_start():
    fleet = fleet_of([1, 2, 3, 4], arrivals=2)
    send(fleet, None, np.arange(3.0), 7, key=(1, 0))
    arrived = fleet.arrivals()
    everyone, *_ = fleet.uploads(arrived)
    assert (everyone.method, everyone.to, everyone.request_type, fleet.at_once) == ("update", None, REST, 4)
    assert [part.tolist() for part in everyone.args] == [[[1, 0]], [[0, 1, 2]], [7]]
    send(fleet, arrived, np.ones(3), 8, key=(2, 0))
    assert fleet.arrivals().tolist() == [0, 2]
    assert fleet.uploads(np.array([2]))[0] is None
    later, *_ = fleet.uploads(np.array([0]))
    assert later.to.tolist() == arrived.tolist() == [0, 1]
    assert later.each.tolist() == [0, 0]
    assert [part.tolist() for part in later.args] == [[[2, 0]], [[1, 1, 1]], [8]]


@pytest.mark.parametrize("options", [STEPS, STEPS | {"aggregate": "all"}, STEPS | {"batch_size": 3}])
def test_when_clients_compute_changes_no_bit(options):
    """Computing at once what is sent, as an event loop does, gives the same as waiting until it is needed."""
    lazy, eager = away(options), away(options)
    schedule = eager.fed.schedule
    begin = schedule.send

    def at_once(request, message_cost):
        sent = begin(request, message_cost)
        eager.fed._ask(schedule.uploads(request.to)[0])
        return sent

    schedule.send = at_once
    for _ in range(12):
        assert lazy.rounds(1).tobytes() == eager.rounds(1).tobytes()
        assert same(lazy.states(), eager.states())
    assert lazy.fed.schedule.finished.max() > 3


def test_a_bound_of_0_is_the_synchronous_run_with_all_clients():
    waiting = away(table={"staleness": 0}).rounds(6)
    plain = Run(build("fedavg", STEPS), selection=All(), system=SLOW)
    np.testing.assert_allclose(waiting, plain.rounds(6), rtol=1e-12)


def test_a_client_has_the_state_of_its_last_arrival_until_it_arrives_again():
    """And the mean is that of uploads that have arrived, not of those that have been computed."""
    run, last = away(STEPS | {"aggregate": "all"}), np.zeros((12, 10))
    before = run.states().w
    for round in range(5):
        run.rounds(1)
        after, arrived = run.states().w, run.fed.selected
        assert np.flatnonzero((after != before).any(axis=1)).tolist() == arrived.tolist()
        assert round or run.fed.schedule.at_once == run.m > len(arrived)
        last[arrived] = after[arrived]
        np.testing.assert_allclose(run.server.x, last.mean(axis=0), rtol=1e-12)
        before = after


@pytest.mark.parametrize(("compress", "bits"), [(None, 640), ({"up": {"name": "topk", "k": 2}}, 2 * 68)])
def test_what_is_sent_counts_as_a_download_and_what_arrives_as_an_upload_also_compressed(compress, bits):
    run, sent, come = away(compress=compress), 0, 0
    for _ in range(7):
        sent += int((~run.fed.schedule.busy).sum())
        run.rounds(1)
        come += len(run.fed.selected)
        ledger = run.fed.ledger
        assert (ledger.downloads, ledger.bytes_down, ledger.bits_down) == (sent, 80 * sent, 640 * sent)
        assert (ledger.uploads, ledger.bytes_up, ledger.bits_up) == (come, bits // 8 * come, bits * come)
    assert ledger.exchanges == 7
    assert run.fed.times_selected.sum() == come == run.fed.schedule.finished.sum()


def test_the_order_of_arrivals_needs_no_computing_and_who_is_under_way_cannot_be_called():
    run = away()
    update, x = run.algorithm.update, run.server.x
    run.fed.begin(1)
    run.fed.send(update, x, 0)
    assert len(run.fed.arrivals()) == 3
    assert run.fed.computing == 0
    assert run.hosts[0].transforms["resting"].client_state == {}
    told = "update calls clients that are under way: in an asynchronous run a method can call only the clients that"
    for call in (run.fed.call, run.fed.send):
        refused(lambda call=call: call(update, x, 0), told)
    run.fed.call(update, x, 0, to=np.flatnonzero(~run.fed.schedule.busy))
    assert run.fed.evaluate(x).sums["objective"] > 0


def test_all_clients_begin_with_one_method_and_no_own_rows_take_some_time_and_are_as_many_as_arrive():
    fleet = fleet_of([1, 2])
    send(fleet, [0])
    refused(lambda: send(fleet, [1], method="other"), "other cannot be sent while update is under way: the clients of")
    own = Request("update", to=np.array([1]), each=np.ones(1), request_type=CALL)
    told = "update cannot be sent with each = … in an asynchronous run: use an argument"
    refused(lambda: fleet.send(own, MessageCost()), told)
    refused(lambda: fleet_of([1, 2], 3), "asynchronous.arrivals = 3 is wrong: it must be between 1 and the 2 clients")
    told = "client 0 takes no time and would always arrive first, so give system.speed, system.latency or a bandwidth"
    refused(lambda: fleet_of([1, 2], speed=None), f"asynchronous.arrivals = 1 is wrong: with this [system] {told}")
    fleet_of([1, 2], speed=None, latency=1)


def test_what_is_dropped_never_arrives_is_charged_as_sent_and_draws_anew_and_a_client_arrives_twice_in_a_round():
    run = away(table={"arrivals": 1})
    fed, x, update = run.fed, run.server.x, run.algorithm.update
    fed.begin(1)
    fed.send(update, x, 0, to=fed.free)
    fed.drop(1)
    assert len(fed.free) == 0  # what began in this round goes on
    first = fed.mean(of=fed.arrivals())
    fed.begin(2)
    fed.drop(1)
    assert fed.free is None
    before = fed.schedule.due.copy()
    fed.send(update, x, 0, to=fed.free)
    lasted = fed.schedule.due - fed.schedule.seconds
    assert not np.isclose(lasted, before).any()
    seen = []
    for _ in range(40):
        arrived = fed.arrivals()
        np.testing.assert_allclose(fed.mean(of=arrived), fed.call(update, x, 0, to=arrived)[0])
        seen += arrived.tolist()
        fed.send(update, x, 0, to=arrived)
    assert len(set(seen)) < 40 == fed.schedule.times_selected.sum() - 1
    assert fed.selected.tolist() == sorted(set(seen))
    assert fed.ledger.uploads == 41 + 40
    assert fed.ledger.downloads == 12 + 12 + 40 + 40
    assert fed.schedule.row()["staleness_max"] == 0
    assert np.isfinite(first).all()


AWAY = {"system": {"speed": {"name": "lognormal", "median": 30}}, "asynchronous": {"arrivals": 3}}
SCHEDULES = {
    "all": {"selection": All()},
    "some": {"selection": UniformSelection(count=4), "cuts": (0, 5, 12)},
    "away": AWAY,
}


@pytest.fixture(params=SCHEDULES)
def run(request):
    return Run(build("fednova", {"k0": 2, "step": {"name": "constant", "a": 0.1}}), **SCHEDULES[request.param])


def test_uploads_are_rows_or_sums_may_have_weights_and_cost_what_they_always_do(run):
    fed, x, method = run.fed, run.server.x, run.algorithm.normalised
    fed.begin(1)
    fed.send(method, x, 0, to=fed.select(x))
    arrived = fed.arrivals()
    count = run.m if arrived is None else len(arrived)
    assert fed.staleness.tolist() == [0] * count
    weights = 1.0 + np.arange(count)
    mean, norm = fed.mean(of=arrived, weights=weights)
    assert (fed.ledger.uploads, fed.ledger.bytes_up) == (count, 8 * (run.n + 1) * count)
    assert fed.ledger.downloads == (run.m if fed.schedule.row() else count)
    rows, norms = fed.call(method, x, 0, to=arrived)
    np.testing.assert_allclose(mean, weights @ rows / count, rtol=1e-12)
    np.testing.assert_allclose(norm, weights @ norms / count, rtol=1e-12)
    fed.begin(2)
    fed.send(method, x, 0, to=arrived)
    again = fed.arrivals()
    found = fed.call(of=again)
    assert found[0].shape == (count, run.n)
    for one, other in zip(found, fed.call(method, x, 0, to=again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_uploads_are_asked_for_once_after_send_and_arrivals(run):
    fed, x = run.fed, run.server.x
    fed.begin(1)
    refused(fed.arrivals, "no upload can arrive: fed.send must be called before fed.arrivals")
    fed.send(run.algorithm.normalised, x, 0, to=fed.select(x))
    refused(fed.mean, "uploads are asked for without a client method: fed.send and fed.arrivals must come before")
    arrived = fed.arrivals()
    fed.mean(of=arrived)
    refused(lambda: fed.mean(of=arrived), "uploads are asked for without a client method")
