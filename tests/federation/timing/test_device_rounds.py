"""Slow, distant and absent clients: who answers, when, and what the record says of it."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed as package
from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedgia import FedGiA
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment, override
from mpifed.federation.local import Local
from mpifed.federation.participation.selection import All
from mpifed.federation.timing.system import System
from mpifed.report.summary import show
from tests.helpers.algorithm_cases import AGAIN, SERVED
from tests.helpers.algorithm_runs import Run, build
from tests.helpers.commands import mpifed
from tests.helpers.devices import M, system
from tests.helpers.studies import STUDIES

NEW = ("asked", "dropped", "late", "simulated_seconds")


def devices(m=6, sizes=None, model=80, algorithm=None, seed=0, chosen=1, **table):
    """Clients of 10 samples each on the devices of ``table``, for FedAvg with one local step and 10 parameters."""
    sizes = np.full(m, 10) if sizes is None else np.array(sizes)
    return system(**table).devices(seed, sizes, np.zeros(model // 8), algorithm or FedAvg(k0=1), chosen)


def run(**tables):
    """The result of a few rounds on a small problem."""
    small = {"data": {"clients": 9, "features": 5}, "algorithm": "fedavg", "rounds": 6}
    return package.run(small | tables)


def test_what_a_client_has_depends_on_the_seed_and_is_drawn_for_each_property_by_itself():
    table = {"name": "lognormal", "median": 10}
    one = devices(m=50, speed=table, bandwidth_up=table, bandwidth_down=table)
    again, other = devices(m=50, speed=table), devices(m=50, speed=table, seed=1)
    assert np.array_equal(one.speed, again.speed)
    assert not np.array_equal(one.speed, other.speed)
    assert len({values.tobytes() for values in (one.speed, one.up, one.down)}) == 3


def test_everybody_answers_where_nothing_says_otherwise():
    idle = devices()
    chosen = np.array([1, 4])
    assert idle.reply(None, 1, 0) is None
    assert idle.reply(chosen, 2, 0) is chosen
    assert idle.row() == {"asked": 8, "dropped": 0, "late": 0, "simulated_seconds": 0.0}


def test_so_many_drop_out_as_the_probability_says_and_others_in_every_draw():
    flaky = devices(m=M, dropout=0.3)
    sets = [flaky.reply(None, *place) for place in ((1, 0), (2, 0), (2, 1))]
    for answered in sets:
        assert abs(len(answered) - 0.7 * M) <= 5 * np.sqrt(M * 0.3 * 0.7)
        assert (np.diff(answered) > 0).all()
    assert abs(len(np.intersect1d(*sets[:2])) - 0.49 * M) <= 5 * np.sqrt(M * 0.49 * 0.51)
    assert len({answered.tobytes() for answered in sets}) == 3
    assert flaky.dropped == 3 * M - sum(map(len, sets))


def test_who_drops_out_does_not_depend_on_who_else_is_asked():
    flaky, some = devices(m=100, dropout=0.5), np.arange(0, 100, 3)
    assert np.array_equal(flaky.reply(some, 4, 0), np.intersect1d(some, flaky.reply(None, 4, 0)))


@pytest.mark.parametrize("deadline", [0.5, 0.1, 0.02])
def test_the_deadline_drops_exactly_those_who_take_longer(deadline):
    slow = devices(
        m=500,
        speed={"name": "lognormal", "median": 100},
        latency=0.001,
        bandwidth_up=1e5,
        bandwidth_down=1e6,
        deadline=deadline,
    )
    T = 0.002 + 80 / 1e5 + 80 / 1e6 + 10 / slow.speed
    assert 0 < (deadline < T).sum() < 500
    assert np.array_equal(slow.reply(None, 1, 0), np.flatnonzero(deadline >= T))
    assert slow.late == (deadline < T).sum()
    assert slow.seconds == deadline


def test_who_is_dropped_is_not_late_too():
    slow = devices(m=1000, speed={"name": "lognormal", "median": 100}, dropout=0.4, deadline=0.1)
    answered = slow.reply(None, 1, 0)
    assert slow.selected == 1000 == len(answered) + slow.dropped + slow.late
    assert abs(slow.dropped - 400) <= 5 * np.sqrt(240)
    assert (10 / slow.speed[answered] <= 0.1).all()


def test_nobody_waits_for_those_who_drop_out():
    mixed, total = devices(m=200, speed={"name": "lognormal", "median": 100}, dropout=0.5), 0.0
    for round in range(1, 6):
        total += (10 / mixed.speed[mixed.reply(None, round, 0)]).max()
    assert mixed.seconds == total < 5 * (10 / mixed.speed).max()


def test_jitter_spreads_computing_by_its_logarithm_anew_in_every_draw():
    shaky = devices(m=M, speed=100.0, latency=0.25, jitter=0.5)
    factors = [shaky.factor(np.arange(M), 1, again) for again in (0, 1)]
    first, second = (shaky.times(np.arange(M), factor, shaky.work, 80, 80) - 0.5 for factor in factors)
    assert np.median(first) == pytest.approx(0.1, rel=0.03)
    assert np.log(first).std() == pytest.approx(0.5, rel=0.03)
    assert abs(np.corrcoef(np.log(first), np.log(second))[0, 1]) < 0.04


def test_the_fastest_of_the_late_are_waited_for_until_there_are_least():
    sizes = [40, 10, 30, 20, 50]  # at 10 samples a second: 4, 1, 3, 2, 5 seconds
    slow = devices(sizes=sizes, speed=10, deadline=1.5, least=3, chosen=5)
    assert list(slow.reply(None, 1, 0)) == [1, 2, 3]
    assert slow.row() == {"asked": 5, "dropped": 0, "late": 2, "simulated_seconds": 3.0}
    assert list(slow.reply(np.array([0, 4]), 2, 0)) == [0, 4]  # of two who are asked three cannot be
    assert slow.seconds == 3.0 + 5.0


def test_if_the_late_do_not_suffice_the_fastest_of_those_who_dropped_out_answer_after_all():
    sizes, asked = np.arange(100, 0, -1), np.arange(100)
    slow = devices(sizes=sizes, speed=10, deadline=0.05, dropout=0.5, least=80, chosen=100)
    free = devices(sizes=sizes, speed=10, dropout=0.5, chosen=100).reply(asked, 1, 0)
    answered = slow.reply(asked, 1, 0)
    others = np.setdiff1d(asked, free)
    assert np.array_equal(answered, np.union1d(free, others[::-1][: 80 - len(free)]))
    assert (slow.dropped, slow.late) == (20, 0)
    assert slow.seconds == sizes[answered].max() / 10


def test_somebody_always_answers():
    gone = devices(m=3, dropout=0.999)
    assert all(len(gone.reply(None, round, 0)) == 1 for round in range(1, 50))


LOGISTIC = {"name": "gaussian", "clients": 9, "samples": 11, "features": 5}


GD = {"solver": {"name": "gd", "steps": 3}}


HAND = {"speed": 1000, "latency": 0.1, "bandwidth_down": 100, "bandwidth_up": 50}


def test_simulated_seconds_by_hand():
    result = run(data={"clients": 3, "features": 5}, selection="all", system=HAND, rounds=4)
    d = result.clients["samples"].max()
    slowest = 0.1 + 40 / 100 + 5 * d / 1000 + 0.1 + 40 / 50  # k0 = 5 steps, a model of 5 numbers of 8 bytes
    np.testing.assert_allclose(result.rounds["simulated_seconds"], slowest * np.arange(5), rtol=1e-12)
    assert result.about["simulated_seconds"][0] == "s"
    assert list(result.rounds["asked"]) == [0, 3, 3, 3, 3]


def test_only_those_who_are_asked_take_time():
    result = run(system=HAND)
    for chosen, seconds in zip(result.selection[1:], np.diff(result.rounds["simulated_seconds"]), strict=True):
        d = result.clients["samples"][chosen[chosen >= 0]]
        assert seconds == pytest.approx(1.4 + 5 * d.max() / 1000, rel=1e-12)


def test_fedgia_waits_for_all_clients():
    result = run(algorithm="fedgia", system=HAND, selection={"count": 1}, rounds=2)
    d = result.clients["samples"].max()
    assert result.rounds["simulated_seconds"][-1] == pytest.approx(2 * (1.4 + d / 1000), rel=1e-12)


def test_single_precision_halves_what_travels_and_scaffold_sends_twice_as_much():
    plain, single, scaffold = (
        run(selection="all", system=HAND, rounds=1, **more).rounds["simulated_seconds"][-1]
        for more in ({}, {"dtype": "float32"}, {"algorithm": "scaffold"})
    )
    assert single == pytest.approx(plain - 0.6)
    assert scaffold == pytest.approx(plain + 1.2)


def test_two_draws_add_up_and_the_candidates_of_a_biased_selection_take_their_time():
    dcd, twice = (
        run(data=LOGISTIC, selection="all", rounds=1, system=HAND, algorithm={"name": name, **GD}).rounds
        for name in ("feddcd", "accfeddcd")
    )
    assert dcd["simulated_seconds"][-1] == pytest.approx(1.4 + 3 * 11 / 1000)
    assert twice["simulated_seconds"][-1] == pytest.approx(2 * (1.4 + 3 * 11 / 1000))
    assert (dcd["asked"][-1], twice["asked"][-1]) == (9, 18)
    biased = {"name": "biased", "count": 2, "batch_size": 7}
    result = run(selection=biased, system=HAND, rounds=1)
    d = result.clients["samples"][result.selection[1]]
    asked = 0.2 + 40 / 100 + 7 / 1000 + 8 / 50
    assert result.rounds["simulated_seconds"][-1] == pytest.approx(asked + 1.4 + 5 * d.max() / 1000)


def test_passes_stand_in_for_what_the_algorithm_computes():
    result = run(selection="all", system=HAND | {"passes": 2.5}, rounds=1)
    assert result.rounds["simulated_seconds"][-1] == pytest.approx(1.4 + 2.5 * result.clients["samples"].max() / 1000)


BY_COIN = {"marina", "proxskip"}  # whose work and messages are those of an average round
WORK = {name: (name, {}) for name in SERVED if name not in BY_COIN} | {
    "feddcd": ("feddcd", GD),
    "accfeddcd": ("accfeddcd", GD),
    "fedadmm": ("fedadmm", {"eps0": 0.0}),
    "fedadmm-insa": ("fedadmm-insa", {"c": 1e-30}),
    "proxskip": ("proxskip", {"p": 1.0}),
    "fedavg, batches": ("fedavg", {"batch_size": 7, "k0": 3}),
    "fedavg, epochs": ("fedavg", {"batch_size": 7, "epochs": 2}),
    "fedprox, batches": ("fedprox", {"batch_size": 7, "k0": 3}),
    "scaffold, epochs": ("scaffold", {"batch_size": 4, "epochs": 3}),
    "flame, full": ("flame", {"batch_size": 0}),
    "sfedavg, quiet": ("sfedavg", {"noise": "none"}),
    "sfedprox, quiet": ("sfedprox", {"noise": "none"}),
    "fedepm, clipped": ("fedepm", {"noise": "clipped"}),
}


@pytest.mark.parametrize("name", WORK)
def test_what_an_algorithm_says_of_its_work_and_messages_is_what_it_does(name, monkeypatch):
    name, options = WORK[name]
    done = []

    def counting(method):
        def counted(f, *args):
            done.append((f.block.w > 0).sum())
            return method(f, *args)

        return counted

    for method in (Local.grad, Local.clipped_grad):
        monkeypatch.setattr(Local, method.__name__, counting(method))
    algorithm = build(name, options)
    setup = Run(algorithm, "quadratic" if "dcd" in name else "least-squares", selection=All())
    done.clear()
    draws, ledger = algorithm.selections or 1, setup.fed.ledger
    before = ledger.bytes_down, ledger.bytes_up
    setup.rounds(1)
    if (work := algorithm.work(setup.data.sizes)) is not None:
        assert sum(done) == draws * work.sum()
    sent = tuple(draws * setup.m * 8 * count for count in algorithm.traffic(setup.n))
    assert (ledger.bytes_down - before[0], ledger.bytes_up - before[1]) == sent


def test_fedadmm_says_at_most():
    assert build("fedadmm", {"k0": 4, "inner_max": 3}).work(np.array([10])) == 90


@pytest.mark.parametrize("name", [name for name in SERVED if not Algorithm.member(name, "algorithm").everyone])
def test_every_algorithm_goes_on_without_absent_clients(name):
    result = run(algorithm=name, data=LOGISTIC, system={"dropout": 0.3})
    rounds, answered = result.rounds, (result.selection >= 0).sum(axis=1)
    assert np.isfinite(result.x).all()
    assert np.isfinite(rounds["objective"]).all()
    assert rounds["dropped"].sum() > 0
    assert (rounds["late"] == 0).all()
    if Algorithm.member(name, "algorithm").selections == 1:
        np.testing.assert_array_equal(answered, rounds["asked"] - rounds["dropped"])
        np.testing.assert_array_equal(
            np.bincount(result.selection[result.selection >= 0], minlength=9), result.clients["times_selected"]
        )
    np.testing.assert_array_equal(np.diff(rounds["uploads"]), (rounds["asked"] - rounds["dropped"])[1:])
    times = 2 if name in AGAIN else 1
    np.testing.assert_array_equal(np.diff(rounds["downloads"]), times * (rounds["asked"] - rounds["dropped"])[1:])


def test_an_absent_client_is_one_who_was_not_chosen(tmp_path):
    absent = run(system={"dropout": 0.4})
    np.savez(tmp_path / "sel.npz", sel=absent.selection[1:])
    chosen = run(selection={"name": "replay", "path": str(tmp_path / "sel.npz")})
    assert absent.rounds["dropped"].sum() > 0
    assert absent.x.tobytes() == chosen.x.tobytes()
    assert absent.rounds["objective"].tobytes() == chosen.rounds["objective"].tobytes()


@pytest.mark.parametrize("table", [{}, HAND, HAND | {"deadline": 1e9, "jitter": 0.5}])
@pytest.mark.parametrize("selection", ["all", "uniform", "biased"])
def test_a_table_under_which_all_answer_changes_no_bit(table, selection):
    without, present = run(selection=selection), run(selection=selection, system=table)
    assert not set(NEW) & set(without.rounds)
    assert set(NEW) <= set(present.rounds)
    assert "system" not in without.config
    for name in ("objective", "grad_norm_sq", "exchanges", "uploads", "downloads", "bytes_up", "bytes_down"):
        assert without.rounds[name].tobytes() == present.rounds[name].tobytes()
    assert without.x.tobytes() == present.x.tobytes()
    assert without.selection.tobytes() == present.selection.tobytes()


PARTIAL = {"speed": 10, "deadline": 5.0, "latency": 0.5, "partial": True}  # 40 samples, or 4 steps on 10, fit in 4 s


def test_clients_take_the_steps_that_fit_into_the_deadline_and_at_least_one():
    sizes = [2, 5, 8, 10, 20, 40, 41, 400]
    slow = devices(sizes=sizes, algorithm=FedAvg(k0=5), chosen=8, **PARTIAL)
    assert list(slow.reply(None, 1, 0)) == [0, 1, 2, 3, 4, 5]
    assert slow.steps.tolist() == [5, 5, 5, 4, 2, 1]
    assert slow.row() == {"asked": 8, "dropped": 0, "late": 2, "simulated_seconds": 5.0, "shortened": 3}
    assert list(slow.reply(np.array([1, 4, 6]), 2, 0)) == [1, 4]
    assert slow.steps.tolist() == [5, 2]
    assert slow.reply(np.array([0, 1]), 3, 0).tolist() == [0, 1]
    assert slow.seconds == 10.0 + 1 + 5 * 5 / 10


def test_a_late_client_that_is_awaited_takes_one_step():
    slow = devices(sizes=[41, 60, 400], algorithm=FedAvg(k0=5), chosen=3, least=2, **PARTIAL)
    assert list(slow.reply(None, 1, 0)) == [0, 1]
    assert slow.steps.tolist() == [1, 1]
    assert slow.row() == {"asked": 3, "dropped": 0, "late": 1, "simulated_seconds": 7.0, "shortened": 2}


def test_steps_of_epochs_share_the_time_of_a_round_and_jitter_counts():
    algorithm = FedAvg(epochs=2, batch_size=10)
    slow = devices(sizes=[25], algorithm=algorithm, jitter=0.5, **PARTIAL)
    for round in range(1, 60):
        assert slow.reply(None, round, 0) is None
        factor = slow.factor(np.array([0]), round, 0)
        whole = float(slow.times(np.array([0]), factor, slow.work, slow.bytes, slow.bytes)[0]) - 1  # six steps
        assert slow.steps.tolist() == [6 if whole <= 4 else int(4 / (whole / 6))]


def test_unequal_work_changes_no_bit_where_the_deadline_is_long():
    plain, partial = (run(system={"speed": 100, "deadline": 1e6, **more}) for more in ({}, {"partial": True}))
    assert plain.x.tobytes() == partial.x.tobytes()
    assert not partial.rounds["shortened"].any()
    assert "shortened" not in plain.rounds


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "fedopt", "apfl", "fednova"])
def test_in_unequal_work_a_client_has_the_bits_of_a_run_with_so_few_steps(name):
    """All clients have as many samples, and with half the time all take half of the steps."""

    def study(k0, **system):
        data = {"name": "gaussian", "clients": 5, "samples": 8, "features": 4}
        return run(data=data, algorithm={"name": name, "k0": k0, "step": "constant"}, selection="all", system=system)

    short = study(6, speed=8, deadline=3.5 * (5 if name == "fedprox" else 2 if name == "apfl" else 1), partial=True)
    assert short.rounds["shortened"][1:].tolist() == [5] * 6
    assert short.x.tobytes() == study(3, speed=8).x.tobytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["system.speed=9"], "system.partial = true is wrong without system.deadline: clients take fewer local "),
        (["system.deadline=9"], "system.partial = true is wrong without system.speed: clients take fewer local steps "),
        (
            ["algorithm=scaffold", "system.speed=9", "system.deadline=9"],
            "system.partial = true is wrong: clients of scaffold cannot take fewer local steps, those of fedavg, ",
        ),
        (
            ["algorithm=ditto", "system.speed=9", "system.deadline=9"],
            "system.partial = true is wrong: clients of ditto cannot take fewer local steps, those of fedavg, fedopt, ",
        ),
    ],
)
def test_unequal_work_that_cannot_be_is_refused(words, sentence, tmp_path):
    done = mpifed("run", "algorithm=fedavg", "data.clients=6", "system.partial=true", *words, cwd=tmp_path)
    assert (done.code, done.err.partition(sentence)[:2]) == (2, ("mpifed: ", sentence))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in STUDIES if name.endswith("flaky")])
def test_what_is_simulated_is_recorded(name):
    result = package.run(override({}, STUDIES[name]))
    assert all(result.rounds[key].sum() > 0 for key in NEW)


def test_a_run_stops_at_a_simulated_time():
    result = run(system={"latency": 0.5}, stop={"simulated_seconds": 3.0})
    assert result.cr == 3
    assert result.stop_reason == "simulated_seconds: simulated time 3 s >= 3 s"


def test_the_screen_tells_simulated_time_and_who_was_absent():
    text = show(run(system={"latency": 0.5, "dropout": 0.3}, rounds=4))
    assert all(f"  {word} " in text for word in ("asked", "dropped", "late", "simulated"))
    assert not any(f"  {word} " in show(run()) for word in ("asked", "dropped", "late", "simulated"))


def test_the_table_describes_itself():
    told = mpifed("describe", "system").out
    assert all(key in told for key in (*System.__struct_fields__, "simulated_seconds", "lognormal"))


def test_the_complete_file_describes_the_same_system():
    table = HAND | {"speed": {"name": "lognormal", "median": 3}, "dropout": 0.1}
    first = run(system=table, rounds=1).config
    assert experiment(first).system == system(**table)


DCD = ["algorithm=feddcd", "data=gaussian"]


EVERYONE = (
    "fedgia needs a gradient of every client in every round, also of those that are not selected, "
    "so no client can be absent"
)


WRONG = {
    "unknown key": (["system.dropuot=0.1"], "unknown key 'system.dropuot'; did you mean 'dropout'?"),
    "no table": (["system=3"], "system = 3 is wrong: system is a table, so write system.KEY = VALUE"),
    "everybody absent": (["system.dropout=1"], "system.dropout = 1 is wrong: it must be a number < 1.0"),
    "below zero": (["system.dropout=-0.1"], "system.dropout = -0.1 is wrong: it must be a number >= 0.0"),
    "no time at all": (["system.deadline=0"], "system.deadline = 0 is wrong: it must be a number > 0.0"),
    "least of 0": (["system.least=0"], "system.least = 0 is wrong: it must be a whole number >= 1"),
    "least above a draw": (
        ["system.least=5"],
        "system.least = 5 is wrong: it must be at most the 3 clients that a round selects",
    ),
    "jitter a word": (["system.jitter=much"], 'system.jitter = "much" is wrong: it must be a number, not a text'),
    "unknown distribution": (["system.speed=lognorml"], "unknown speed 'lognorml'; did you mean 'lognormal'?"),
    "no median": (["system.speed=lognormal"], "system.speed.median is missing: it has no default"),
    "unknown parameter": (
        ["system.speed={name='pareto',mean=3}"],
        "unknown key 'system.speed.mean'; the choices are scale, shape",
    ),
    "not finite": (["system.latency=inf"], "system.latency.value = inf is wrong: it must be a finite number"),
    "true": (
        ["system.speed=true"],
        "system.speed = true is wrong: it must be a number, or a table that names a distribution",
    ),
    "upside down": (
        ["system.speed={name='uniform',low=2,high=1}"],
        "system.speed: low = 2.0 is wrong: it must be at most high = 1.0",
    ),
    "no speed": (
        ["system.speed=0"],
        'system.speed = {name = "constant", value = 0.0} is wrong: it must be above 0 and finite for every client',
    ),
    "stop without a system": (
        ["stop.simulated_seconds=9"],
        "stop.simulated_seconds = 9.0 is wrong: time is simulated only "
        "with a table [system], which states the speed of the clients",
    ),
    "fedgia with dropout": (["algorithm=fedgia", "system.dropout=0.3"], f"system.dropout = 0.3 is wrong: {EVERYONE}"),
    "fedgia with a deadline": (
        ["algorithm=fedgia", "system.deadline=3"],
        f"system.deadline = 3.0 is wrong: {EVERYONE}",
    ),
    "newton": (
        [*DCD, "system.speed=9"],
        "system.passes is missing: feddcd cannot tell beforehand how often its clients "
        "pass over their samples, so system.speed needs it",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_by_a_sentence(name, tmp_path):
    words, sentence = WRONG[name]
    done = mpifed("run", "algorithm=fedavg", "data.clients=6", "rounds=2", *words, cwd=tmp_path)
    assert (done.code, done.err, done.out) == (2, f"mpifed: {sentence}\n", "")
    assert not list(tmp_path.iterdir())


def test_feddcd_runs_with_newton_where_passes_are_given():
    result = run(data=LOGISTIC, algorithm="feddcd", selection="all", rounds=1, system={"speed": 10, "passes": 4})
    assert result.rounds["simulated_seconds"][-1] == pytest.approx(4 * 11 / 10)


def test_some_methods_cannot_do_without_anybody():
    everyone = {name for name in Algorithm.choices if Algorithm.member(name, "algorithm").everyone}
    assert everyone == {"fedgia", "fedgia-graph", "fednl", "marina", "newton"}
    with pytest.raises(UserError, match=r"^system\.dropout = 0\.3 is wrong: fedgia"):
        devices(algorithm=FedGiA(), dropout=0.3)
    with pytest.raises(UserError, match="marina needs a gradient of every client in some rounds"):
        run(algorithm="marina", system={"dropout": 0.3})


def test_the_clock_of_a_method_that_asks_all_goes_on_where_it_stopped(tmp_path):
    table = {"algorithm": "newton", "data": LOGISTIC, "system": HAND | {"passes": 2}, "stop": {"gradient": 0.0}}
    whole = run(**table, rounds=4)
    package.run(table | {"rounds": 2}, path=tmp_path / "out.h5")
    again = package.resume(tmp_path / "out.h5", {"rounds": 4})
    np.testing.assert_array_equal(again.rounds["simulated_seconds"], whole.rounds["simulated_seconds"])
