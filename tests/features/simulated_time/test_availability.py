"""Who is there when, by plain loops over clients, and what a round does with those that come and go."""

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import UserError
from mpifed.engine.asynchrony.arrivals import Arrivals
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.simulated_time.availability import Availability, Intervals, check_availability
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import TimedPresence
from mpifed.federation.participation.selection import Biased, UniformSelection
from mpifed.federation.request import Request
from mpifed.federation.transform import MessageCost
from tests.helpers.devices import devices

M = 12
SMALL = {"data": {"clients": M, "features": 5}, "algorithm": "fedavg", "rounds": 8, "stop": {"gradient": 0.0}}
DAYS = {"name": "diurnal", "period": 10.0, "share": 0.3}
DAY = {"name": "diurnal", "period": 3.0, "share": 0.5}


def draw_rows(seed=0, m=M, most=6, period=40.0):
    """Draw rows (client, from, until) of whole seconds that do not overlap, some of which touch, in any order."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(m):
        times = np.sort(rng.choice(int(period) + 1, 2 * rng.integers(1, most), replace=False))
        cuts = times[1:-1][rng.random(len(times) - 2) < 0.3]
        times = np.sort(np.concatenate([times, cuts[: len(cuts) // 2 * 2]]))
        rows += [(i, a, b) for a, b in zip(times[::2], times[1::2], strict=True) if a < b]
    return np.array(rows, float)[rng.permutation(len(rows))]


def is_there(rows, period, i, t):
    """Whether client i is there at the time t."""
    for client, begin, end in rows:
        for shift in (-period, 0.0, period):
            if client == i and begin + shift <= t % period < end + shift:
                return True
    return False


def presence_of(rows, period=40.0, m=M):
    return TimedPresence(check_availability(Intervals(*rows.T, period), m), m)


def write_csv(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("seed", range(3))
def test_who_is_there_is_what_a_loop_over_all_rows_finds_at_any_time_and_after_any_steps(seed):
    rows = draw_rows(seed)
    together = presence_of(rows)
    for t in np.cumsum(np.random.default_rng(seed).choice([0.0, 0.25, 1.0, 7.5, 90.0], 60)):
        expected = [is_there(rows, 40.0, i, t) for i in range(M)]
        alone = presence_of(rows)
        for presence in (together, alone):  # one that has seen the times before, and one that has not
            presence.update(t)
            assert presence.there.tolist() == expected
        assert together.changes.tobytes() == alone.changes.tobytes()


@pytest.mark.parametrize("seed", range(2))
def test_a_client_stays_until_the_first_time_at_which_a_loop_does_not_find_it(seed):
    """All times are whole seconds, so it is enough to look at these."""
    rows = draw_rows(seed)
    for t in range(0, 80, 17):
        presence = presence_of(rows)
        presence.update(t)
        for i in range(M):
            others = [s for s in range(t, t + 81) if is_there(rows, 40.0, i, s) != presence.there[i]]
            assert presence.changes[i] == (others[0] if others else np.inf)


def test_diurnal_clients_are_there_for_their_share_of_each_day_from_their_own_time_on():
    presence = devices([1] * 50, seed=5, availability=DAYS).presence
    begin = Availability.build(DAYS, "a").draw(mpifed.extend.stream(5, "system", 0, 4), 50).begin
    for t in np.arange(0.0, 35.0, 0.37):
        presence.update(t)
        assert presence.there.tolist() == [(t - b) % 10.0 < 3.0 for b in begin]
    assert devices([1] * 4, availability=DAYS | {"share": 1.0}).presence.wait(1, 5e5, 4) == 5e5


@pytest.mark.parametrize("minimum", [2, 5, 7])
def test_time_goes_on_to_the_first_second_at_which_a_loop_finds_enough_clients(minimum):
    rows = draw_rows(1)
    counts = [sum(is_there(rows, 40.0, i, t) for i in range(M)) for t in range(40)]
    assert min(counts) < minimum <= max(counts)
    for begin in range(0, 120, 3):
        expected = next(t for t in range(begin, begin + 41) if counts[t % 40] >= minimum)
        assert presence_of(rows).wait(1, begin, minimum) == expected


def test_of_the_selected_those_reply_that_a_loop_finds_there_until_they_are_done(tmp_path):
    rows = draw_rows(2)
    path = tmp_path / "trace.csv"
    np.savetxt(path, rows, delimiter=",", header="client,from,until", comments="")
    sizes = np.arange(1, M + 1)  # seconds
    for deadline in (None, 6.0):
        table = {} if deadline is None else {"deadline": deadline}
        system = devices(sizes, availability={"name": "trace", "path": str(path), "period": 40}, speed=1, **table)
        rounds = DeviceRounds(system, FedAvg(k0=1), 1, among=lambda *key: key[-1])
        for round in range(1, 20):
            rounds.begin(round)
            t = rounds.seconds
            there = [i for i in range(M) if is_there(rows, 40.0, i, t)]
            assert rounds.present.tolist() == there
            replied = rounds.select(lambda again: None, 1)
            ends = {i: t + min(sizes[i], deadline or np.inf) for i in there}
            half_seconds = {i: np.arange(t, ends[i], 0.5) for i in there}
            stays = [i for i in there if all(is_there(rows, 40.0, i, s) for s in half_seconds[i])]
            expected = [i for i in stays if deadline is None or sizes[i] <= deadline]
            assert replied.tolist() == (expected or [min(there, key=lambda i: (i not in stays, sizes[i]))])


def test_probabilities_are_drawn_anew_in_each_round_and_for_each_client():
    p = np.where(np.arange(4000) % 2, 0.2, 0.7)
    presence = devices([1] * len(p), availability=p.tolist()).presence
    first, second = (presence.wait(round, 0.0, 1) * 0 + presence.there for round in (1, 2))
    for there in (first, second):
        assert abs(there[::2].mean() - 0.7) < 5 * np.sqrt(0.21 / 2000)
        assert abs(there[1::2].mean() - 0.2) < 5 * np.sqrt(0.16 / 2000)
    assert abs((first * second)[::2].mean() - 0.49) < 5 * np.sqrt(0.25 / 2000)
    few = devices([1] * 10, availability=0.1).presence
    assert all(few.wait(round, 2.5, 4) == 2.5 and few.there.sum() >= 4 for round in range(1, 20))


def test_a_uniform_selection_draws_among_those_there_and_takes_all_where_they_are_few():
    selector = UniformSelection(count=3).selector(0, 10, 1)
    present = np.array([1, 4, 6, 7, 9])
    drawn = np.concatenate([selector.among(0, 3, round, 0, present) for round in range(1, 1001)])
    counts = np.bincount(drawn, minlength=10)
    assert counts.sum() == 3000
    assert set(np.flatnonzero(counts)) == set(present)
    assert (abs(counts[present] - 600) < 5 * np.sqrt(1000 * 0.6 * 0.4)).all()
    assert selector.among(0, 3, 1, 0, present[:2]).tolist() == [1, 4]
    assert len(Biased(count=2, candidates=4).selector(0, 10, 1).among(0, 4, 1, 0, present)) == 4


GREEDY = {"name": "greedy", "count": 5, "candidates": 8, "uniform": 2}
CASES = {
    "all": {"selection": "all"},
    "biased": {"selection": {"name": "biased", "count": 5, "candidates": 8}},
    "greedy": {"algorithm": {"name": "feddcd", "solver": {"name": "gd", "steps": 3}}, "selection": GREEDY},
    "two selections": {"algorithm": {"name": "accfeddcd", "solver": {"name": "gd", "steps": 3}}},
    "masks": {"masks": {"sums": "masked", "threshold": 0.3}, "selection": "all", "system": {"least": 4}},
    "compressed": {"compress": {"up": "natural"}},
    "partial": {"system": {"deadline": 0.45, "partial": True}, "selection": "all"},
}
LOGISTIC = {"data": {"name": "gaussian", "clients": M, "samples": 11, "features": 5}}


@pytest.mark.parametrize("name", CASES)
def test_rounds_take_only_clients_that_are_there_and_charge_those_that_reply(name):
    case = {**CASES[name]}
    system = {"availability": DAY, "speed": 100, "latency": 0.1} | case.pop("system", {})
    result = mpifed.run(SMALL | LOGISTIC | case, system=system)
    presence = devices([1] * M, availability=DAY).presence
    rounds = result.rounds
    for round in range(1, result.cr + 1):
        presence.wait(round, rounds["simulated_seconds"][round - 1], system.get("least", 1))
        assert rounds["available"][round] == presence.there.sum()
        assert presence.there[result.selected(round)].all()
    assert np.isfinite(result.x).all()
    assert rounds["dropped"].sum() > 0
    if name in ("all", "partial"):
        replied = [len(result.selected(round)) for round in range(1, result.cr + 1)]
        np.testing.assert_array_equal(np.diff(rounds["uploads"]), replied)
        np.testing.assert_array_equal(rounds["selected"][1:], rounds["available"][1:])


def test_availability_of_all_changes_no_bit():
    plain = mpifed.run(SMALL, system={"latency": 0.1})
    for availability in (1.0, [1.0] * M, {"name": "diurnal", "share": 1.0}):
        same = mpifed.run(SMALL, system={"latency": 0.1, "availability": availability})
        assert same.x.tobytes() == plain.x.tobytes()
        assert same.selection.tobytes() == plain.selection.tobytes()


def send(fleet, to):
    fleet.send(Request("update", (), to, key=(fleet.round, 0)), MessageCost())


def test_in_an_asynchronous_run_who_leaves_loses_its_work_and_is_sent_another_model_when_it_is_back(tmp_path):
    """Client 0 needs 2 s and is there for 3 of 4 s, client 1 needs 3 s and leaves after 1 s, client 2 comes at 5 s."""
    path = write_csv(tmp_path / "trace.csv", "client,from,until\n0,0,3\n1,0,1\n1,3,16\n2,5,16\n0,4,16\n")
    fleet = Arrivals(Asynchronous(1, None), devices([2, 3, 4], speed=1, availability=path))
    seen = []
    for round in range(1, 6):
        fleet.begin(round)
        to = fleet.free
        send(fleet, to)
        seen.append((to.tolist(), fleet.arrivals().tolist(), fleet.seconds))
    # at 2 s client 0 begins anew and would be done at 4 s, after it leaves: all under way would leave
    assert seen == [([0, 1], [0], 2), ([0], [0], 4), ([0, 1], [0], 6), ([0, 2], [1], 7), ([1], [0], 8)]


def test_asynchronous_methods_go_on_with_clients_that_come_and_go():
    table = {"availability": {"name": "diurnal", "period": 5.0, "share": 0.6}, "speed": 100, "latency": 0.2}
    for name in ("fedadmm", "fedbuff", "rennala"):
        found = mpifed.run(SMALL | {"algorithm": name, "rounds": 20}, system=table, asynchronous={"arrivals": 2})
        assert np.isfinite(found.x).all()
        assert 0 < found.rounds["available"][1:].min() < M
        assert (np.diff(found.rounds["simulated_seconds"]) >= 0).all()


REFUSED = {
    "": "trace.csv' cannot be read: it is empty, and it must have client, from, until",
    "client,from\n0,1\n": "its columns are client, from, and it must have client, from, until",
    "client,from,until\n": "it has no intervals",
    "client,from,until\n0,1,x\n": "cannot be read: could not convert string 'x' to float64",
    "client,from,until\n12,0,1\n": "client 12 is there from 0 until 1 seconds: clients are whole numbers from 0 to 11",
    "client,from,until\n0.5,0,1\n": "client 0.5 is there from 0 until 1 seconds: clients are whole numbers from 0",
    "client,from,until\n3,-1,1\n": "client 3 is there from -1 until 1 seconds: times must be finite and not negative",
    "client,from,until\n3,0,inf\n": "times must be finite and not negative",
    "client,from,until\n2,9,5\n": "client 2 is there from 9 until 5 seconds: until must be after from",
    "client,from,until\n2,0,5\n2,9,9\n": "client 2 is there from 9 until 9 seconds: until must be after from",
    "client,from,until\n1,4,8\n1,0,5\n": "client 1 is there from 4 until 8 seconds: that overlaps another",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_trace_that_cannot_be_is_refused_with_a_sentence(text, tmp_path):
    path = write_csv(tmp_path / "trace.csv", text)
    with pytest.raises(UserError) as error:
        mpifed.run(SMALL, system={"latency": 1.0, "availability": path})
    assert str(error.value).startswith('system.availability = {name = "trace"')
    assert REFUSED[text] in str(error.value)


WRONG = {
    "it must be a number > 0": {"availability": 0},
    "it must be a number > 0 and <= 1": {"availability": 1.5},
    "it has 2 numbers, and there are 12 clients": {"availability": [0.5, 0.5]},
    "by system.availability never so many clients are there": {"availability": DAY | {"share": 0.01}, "least": 6},
    "were there in 10,000 draws of round 0: give a larger": {"availability": 0.001, "least": 6},
    "it must begin before the period of 3 seconds is over": {"availability": {"path": "late.h5", "period": 3}},
    "that overlaps another interval": {"availability": {"path": "late.h5", "period": 5}},
    "'none.csv' cannot be read": {"availability": "none.csv"},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_cannot_be_is_refused_with_a_sentence(sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("late.h5", "w") as file:
        file.update({"client": [0, 0], "from": [1.0, 4.0], "until": [2.0, 6.5]})
    table = WRONG[sentence]
    if isinstance(table["availability"], dict) and "path" in table["availability"]:
        table = {"availability": {"name": "trace"} | table["availability"]}
    with pytest.raises(UserError, match=sentence):
        mpifed.run(SMALL, system={"latency": 1.0} | table)


def test_a_trace_in_hdf5_is_that_in_csv_and_stands_beside_its_study(tmp_path):
    rows = draw_rows(3)
    np.savetxt(tmp_path / "trace.csv", rows[:, [2, 0, 1]], delimiter=",", header="until, client, from", comments="")
    with h5py.File(tmp_path / "trace.h5", "w") as file:
        file.update(dict(zip(("client", "from", "until"), rows.T, strict=True)))
    found = []
    for ending in ("csv", "h5"):
        study = 'rounds = 8\nalgorithm = "fedavg"\n[data]\nclients = 12\nfeatures = 5\n[system]\nlatency = 3\n'
        (tmp_path / "study.toml").write_text(f'{study}availability = "trace.{ending}"\n')
        found.append(mpifed.run(str(tmp_path / "study.toml")))
    assert found[0].x.tobytes() == found[1].x.tobytes()
    assert found[0].rounds["available"].tolist() == found[1].rounds["available"].tolist()
