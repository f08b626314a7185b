"""Slow, distant and absent clients: who replies, when, and what the record says of it."""

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.experiment.config import override
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.report.summary import show
from tests.helpers import traits
from tests.helpers.algorithm_cases import AGAIN, SERVED
from tests.helpers.algorithm_runs import build
from tests.helpers.devices import devices
from tests.helpers.studies import STUDIES

NEW = ("selected", "dropped", "late", "simulated_seconds")
MANY = 20000  # clients, where shares are measured
LOGISTIC = {"name": "gaussian", "clients": 9, "samples": 11, "features": 5}
UNEQUAL = {"name": "lognormal", "median": 100}


class Rounds(DeviceRounds):
    """Clients of 10 samples each, or of these sizes."""

    def __init__(self, m=6, sizes=None, algorithm=None, cohort=1, **table):
        algorithm = algorithm or FedAvg(k0=1)
        super().__init__(devices([10] * m if sizes is None else sizes, algorithm=algorithm, **table), algorithm, cohort)

    def replies(self, asked, round, again=0):
        """Of the clients asked (None: all), those that reply; None: all."""
        self.round, self.again = round, again
        return self.reply(asked, 1)


def run(**tables):
    """The result of a few rounds on a small problem."""
    small = {"data": {"clients": 9, "features": 5}, "algorithm": "fedavg", "rounds": 6}
    return mpifed.run(small | tables)


def test_everybody_replies_where_nothing_says_otherwise():
    idle = Rounds()
    chosen = np.array([1, 4])
    assert idle.replies(None, 1) is None
    assert idle.replies(chosen, 2) is chosen
    assert idle.row() == {"selected": 8, "dropped": 0, "late": 0, "simulated_seconds": 0.0}


def test_so_many_drop_out_as_the_probability_says_and_others_in_every_draw():
    flaky = Rounds(MANY, dropout=0.3)
    sets = [flaky.replies(None, *place) for place in ((1, 0), (2, 0), (2, 1))]
    for replied in sets:
        assert abs(len(replied) - 0.7 * MANY) <= 5 * np.sqrt(MANY * 0.3 * 0.7)
        assert (np.diff(replied) > 0).all()
    assert abs(len(np.intersect1d(*sets[:2])) - 0.49 * MANY) <= 5 * np.sqrt(MANY * 0.49 * 0.51)
    assert len({replied.tobytes() for replied in sets}) == 3
    assert flaky.dropped == 3 * MANY - sum(map(len, sets))
    some = np.arange(0, MANY, 3)  # who else is asked does not matter
    assert np.array_equal(flaky.replies(some, 2), np.intersect1d(some, sets[1]))


@pytest.mark.parametrize("deadline", [0.5, 0.1, 0.02])
def test_the_deadline_drops_exactly_those_who_take_longer(deadline):
    slow = Rounds(500, speed=UNEQUAL, latency=0.001, bandwidth_up=1e5, bandwidth_down=1e6, deadline=deadline)
    T = 0.002 + 80 / 1e5 + 80 / 1e6 + 10 / slow.devices.speed
    assert 0 < (deadline < T).sum() < 500
    assert np.array_equal(slow.replies(None, 1), np.flatnonzero(deadline >= T))
    assert slow.late == (deadline < T).sum()
    assert slow.seconds == deadline


def test_who_is_dropped_is_not_late_too_nobody_waits_for_them_and_somebody_always_replies():
    slow = Rounds(1000, speed=UNEQUAL, dropout=0.4, deadline=0.1)
    replied = slow.replies(None, 1)
    assert slow.called == 1000 == len(replied) + slow.dropped + slow.late
    assert abs(slow.dropped - 400) <= 5 * np.sqrt(240)
    assert (10 / slow.devices.speed[replied] <= 0.1).all()
    gone = Rounds(3, dropout=0.999)
    assert all(len(gone.replies(None, round)) == 1 for round in range(1, 50))
    mixed, total = Rounds(200, speed=UNEQUAL, dropout=0.5), 0.0
    for round in range(1, 6):
        total += (10 / mixed.devices.speed[mixed.replies(None, round)]).max()
    assert mixed.seconds == total < 5 * (10 / mixed.devices.speed).max()


def test_the_fastest_of_the_late_and_then_of_those_who_dropped_out_are_waited_for_until_there_are_least():
    sizes = [40, 10, 30, 20, 50]  # at 10 samples a second: 4, 1, 3, 2, 5 seconds
    slow = Rounds(sizes=sizes, speed=10, deadline=1.5, least=3, cohort=5)
    assert list(slow.replies(None, 1)) == [1, 2, 3]
    assert slow.row() == {"selected": 5, "dropped": 0, "late": 2, "simulated_seconds": 3.0}
    assert list(slow.replies(np.array([0, 4]), 2)) == [0, 4]  # of two who are asked three cannot be
    assert slow.seconds == 3.0 + 5.0
    sizes, asked = np.arange(100, 0, -1), np.arange(100)
    slow = Rounds(sizes=sizes, speed=10, deadline=0.05, dropout=0.5, least=80, cohort=100)
    free = Rounds(sizes=sizes, speed=10, dropout=0.5, cohort=100).replies(asked, 1)
    replied = slow.replies(asked, 1)
    others = np.setdiff1d(asked, free)
    assert np.array_equal(replied, np.union1d(free, others[::-1][: 80 - len(free)]))
    assert (slow.dropped, slow.late) == (20, 0)
    assert slow.seconds == sizes[replied].max() / 10


DEFAULT = ("fedavg", "accfeddcd", "proxskip")
ABLE = [name for name in SERVED if traits.bears_absence(build(name))]


@pytest.mark.parametrize(
    "name", [name if name in DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in ABLE]
)
def test_every_algorithm_goes_on_without_absent_clients(name):
    result = run(algorithm=name, data=LOGISTIC, system={"dropout": 0.3})
    rounds, replied = result.rounds, (result.selection >= 0).sum(axis=1)
    there = rounds["selected"] - rounds["dropped"]
    assert np.isfinite(result.x).all()
    assert np.isfinite(rounds["objective"]).all()
    assert rounds["dropped"].sum() > 0
    assert (rounds["late"] == 0).all()
    if traits.selections(build(name)) == 1:
        times = np.bincount(result.selection[result.selection >= 0], minlength=9)
        np.testing.assert_array_equal(replied, there)
        np.testing.assert_array_equal(times, result.clients["times_selected"])
    np.testing.assert_array_equal(np.diff(rounds["uploads"]), there[1:])
    np.testing.assert_array_equal(np.diff(rounds["downloads"]), (2 if name in AGAIN else 1) * there[1:])


def test_an_absent_client_is_one_who_was_not_chosen(tmp_path):
    absent = run(system={"dropout": 0.4})
    np.savez(tmp_path / "sel.npz", sel=absent.selection[1:])
    chosen = run(selection={"name": "replay", "path": str(tmp_path / "sel.npz")})
    assert absent.rounds["dropped"].sum() > 0
    assert absent.x.tobytes() == chosen.x.tobytes()
    assert absent.rounds["objective"].tobytes() == chosen.rounds["objective"].tobytes()


@pytest.mark.parametrize("selection", ["all", "uniform", "biased"])
def test_a_table_under_which_all_reply_changes_no_bit(selection):
    without = run(selection=selection, rounds=3)
    assert not set(NEW) & set(without.rounds)
    assert "system" not in without.config
    slow = {"speed": 1000, "latency": 0.1, "bandwidth_down": 100, "deadline": 1e9, "jitter": 0.5}
    for table in ({}, slow, slow | {"partial": True}):
        present = run(selection=selection, system=table, rounds=3)
        assert set(NEW) <= set(present.rounds)
        assert ("shortened" in present.rounds) == ("partial" in table)
        assert not present.rounds.get("shortened", np.zeros(1)).any()
        for name in ("objective", "grad_norm_sq", "exchanges", "uploads", "downloads", "bytes_up", "bytes_down"):
            assert without.rounds[name].tobytes() == present.rounds[name].tobytes()
        assert without.x.tobytes() == present.x.tobytes()
        assert without.selection.tobytes() == present.selection.tobytes()


PARTIAL = {"speed": 10, "deadline": 5.0, "latency": 0.5, "partial": True}  # 40 samples, or 4 steps on 10, fit in 4 s


def test_clients_take_the_steps_that_fit_into_the_deadline_and_at_least_one():
    slow = Rounds(sizes=[2, 5, 8, 10, 20, 40, 41, 400], algorithm=FedAvg(k0=5), cohort=8, **PARTIAL)
    assert list(slow.replies(None, 1)) == [0, 1, 2, 3, 4, 5]
    assert slow.steps.tolist() == [5, 5, 5, 4, 2, 1]
    assert slow.row() == {"selected": 8, "dropped": 0, "late": 2, "simulated_seconds": 5.0, "shortened": 3}
    assert list(slow.replies(np.array([1, 4, 6]), 2)) == [1, 4]
    assert slow.steps.tolist() == [5, 2]
    assert slow.replies(np.array([0, 1]), 3).tolist() == [0, 1]
    assert slow.seconds == 10.0 + 1 + 5 * 5 / 10
    # one of those that are late is awaited
    slow = Rounds(sizes=[41, 60, 400], algorithm=FedAvg(k0=5), cohort=3, least=2, **PARTIAL)
    assert list(slow.replies(None, 1)) == [0, 1]
    assert slow.steps.tolist() == [1, 1]
    assert slow.row() == {"selected": 3, "dropped": 0, "late": 1, "simulated_seconds": 7.0, "shortened": 2}


def test_a_client_whose_steps_end_after_the_deadline_by_rounding_alone_takes_one_less():
    """0.6 s on the way and two steps of 0.55 s are 1.7 s, and a little more in floating point."""
    slow = Rounds(sizes=[1, 55], algorithm=FedAvg(k0=9), cohort=2, speed=100, latency=0.3, deadline=1.7, partial=True)
    assert 0.6 + 2 * 0.55 > 1.7
    assert slow.replies(None, 1) is None
    assert slow.steps.tolist() == [9, 1]
    assert slow.late == 0
    assert slow.seconds == 0.6 + 0.55


def test_the_server_does_not_wait_for_the_deadline_where_clients_drop_out_and_nobody_is_late():
    flaky = Rounds(50, speed=UNEQUAL, dropout=0.4, deadline=1e6)
    replied = flaky.replies(None, 1)
    assert flaky.dropped > 0 == flaky.late
    assert flaky.seconds == (10 / flaky.devices.speed[replied]).max()


def test_steps_of_epochs_share_the_time_of_a_round_and_jitter_counts():
    slow, alone = Rounds(sizes=[25], algorithm=FedAvg(epochs=2, batch_size=10), jitter=0.5, **PARTIAL), np.array([0])
    for round in range(1, 60):
        assert slow.replies(None, round) is None
        whole = float(slow.devices.round_times(alone, slow.devices.factor(alone, round, 0))[0]) - 1  # six steps
        assert slow.steps.tolist() == [6 if whole <= 4 else int(4 / (whole / 6))]


@pytest.mark.parametrize(
    ("name", "gradients"),
    [("apfl", 2), ("fednova", 1)]
    + [pytest.param(*one, marks=pytest.mark.slow) for one in (("fedavg", 1), ("fedprox", 5), ("fedopt", 1))],
)
def test_in_unequal_work_a_client_has_the_bits_of_a_run_with_so_few_steps(name, gradients):
    """All clients have as many samples, and with half the time all take half of the steps of so many gradients."""

    def study(k0, **system):
        data = {"name": "gaussian", "clients": 5, "samples": 8, "features": 4}
        return run(data=data, algorithm={"name": name, "k0": k0, "step": "constant"}, selection="all", system=system)

    short = study(6, speed=8, deadline=3.5 * gradients, partial=True)
    assert short.rounds["shortened"][1:].tolist() == [5] * 6
    assert short.x.tobytes() == study(3, speed=8).x.tobytes()


def test_what_is_simulated_is_recorded_and_told_on_the_screen():
    flaky, words = mpifed.run(override({}, STUDIES["fedavg, flaky"])), ("selected", "dropped", "late", "simulated")
    assert all(flaky.rounds[key].sum() > 0 for key in NEW)
    text, plain = show(flaky), show(run(rounds=1))
    assert all(f"  {word} " in text for word in words)
    assert not any(f"  {word} " in plain for word in words)
