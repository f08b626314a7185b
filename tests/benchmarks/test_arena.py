"""The arena: workloads drawn, settings in units, costs of a run, goals, resuming, the lock, a user's own class."""

import json
import math
import re
from collections import Counter

import msgspec
import numpy as np
import pytest

import mpifed
from benchmarks.arena import __main__ as command
from benchmarks.arena import costs, decide, goals, plan, runs, study
from benchmarks.arena.runs import Row, Table, Task
from mpifed.core.errors import RunError, UserError
from mpifed.core.toml import flatten

SMALL = """
[[workload]]
name = "learn"
about = "a quadratic"
group = "plain"
study.data = { name = "quadratic", clients = 4, features = 3, mu = 0.2, seed = 1 }
study.selection = { name = "uniform", share = 0.5 }

[[workload]]
name = "judge"
about = "least squares"
group = "plain"
study.data = { name = "linreg-noniid", clients = 4, features = 3, least = 5, most = 9, seed = 1 }
study.selection = "all"
"""
PLAN = """
tries = 2
keep = 1
tuning_seeds = 2
held_out_seeds = 2
"""
RULES = f"""
[draw]
number = 2

[plan.full]
{PLAN}

[plan.committed]
{PLAN}

[goal]
gaps = [0.01, 1e-6]
apart = [0.2]
high = 1e-5
gradient = 1e-6
rounds = 60
seed = 900
steps = 5
rate = 0.01

[seeds]
tuning = 100
final = 0

[system]
tick = 0.2
lognormal = 1.0
pareto = 1.2

[curvature]
most = 100
passes = 0.25
value = 0.5

[[method]]
label = "GD"
name = "gd"
gamma = "0.3..3 / r"

[[method]]
label = "FedGiA"
name = "fedgia"
k0 = "1..3"
t = "0.05..0.5"

[[method]]
label = "L-BFGS"
name = "lbfgs"
before = 1
"""
AIMS = {"columns": ["objective"] * 2, "gaps": [0.2, 0.1], "goals": [2.0, 1.0], "pooled": [1.0, 2.0]}
KNOWN = plan.Facts(4, 3, 10.0, 2.0, 1.0, 0.5, True, 160, 10.0, 0.0, **AIMS)
CACHED = (plan.workloads, plan.rules, plan.facts, plan.shares, plan.available)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The folder of a study of two workloads, two methods and two tries."""
    (tmp_path / "workloads.toml").write_text(SMALL)
    (tmp_path / "rules.toml").write_text(RULES)
    for name in ("page.md", "explore.html"):
        (tmp_path / name).write_text(plan.file(name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(plan, "HERE", tmp_path)
    monkeypatch.setattr(command, "COMMITTED", tmp_path / "committed.jsonl.gz")
    monkeypatch.setenv(plan.ENTERED, "null")
    monkeypatch.setattr(decide.made, "__defaults__", (1,))  # of one tuning workload a choice is made too
    for function in CACHED:
        function.cache_clear()
    yield tmp_path
    for function in CACHED:
        function.cache_clear()


def done(folder, *words):
    return command.main([*words, "--to", str(folder), "--processes", "1"])


def test_workloads_and_rules_are_what_the_comparison_promises():
    found = plan.workloads().values()
    assert Counter(one.group for one in found) == {"plain": 10, "absent": 6, "network": 4, "sites": 4}
    held = Counter(one.group for one in found if one.part == "held-out")
    assert held == {"plain": 5, "absent": 3, "network": 2, "sites": 2}
    for one in found:
        assert ("dropout" in one.study.get("system", {})) == (one.group == "absent")
        assert ("client" in one.study["data"]) == (one.group == "sites")
        known = plan.facts()[one.name]
        if one.group == "network":
            assert one.batch > 0
            assert set(known.columns) == {"validation_objective", "validation_accuracy"}
        else:
            assert 0 < known.gradient <= 1e-6  # there is a minimiser
            assert set(known.accuracies) == {"low", "high"}
    many = [one for one in plan.facts().values() if one.n < one.samples * one.m / 100]
    assert len(many) >= 4
    assert max(one.n for one in plan.facts().values()) > 100_000
    assert set(plan.facts()) == set(plan.workloads())
    assert all(known.goals for known in plan.facts().values())
    assert not any("x*" in str(value) for one in plan.rules().method for value in flatten(one).values())


def test_the_number_of_the_rules_alone_decides_which_half_of_a_group_is_held_out():
    of = [(f"a{k}", "a") for k in range(6)] + [(f"b{k}", "b") for k in range(4)]
    drawn = [plan.held_out(of, number) for number in range(20)]
    assert all(sum(name[0] == "a" for name in held) == 3 and len(held) == 5 for held in drawn)
    assert len(set(map(frozenset, drawn))) > 10
    assert plan.held_out(of, 7) == drawn[7]


@pytest.mark.parametrize("label", plan.labels())
def test_tries_stay_in_their_ranges_whose_unit_is_r_and_a_longer_list_begins_with_a_shorter_one(label):
    few, many = plan.shares(label, 6), plan.shares(label, 20)
    assert many[:6] == few
    ranges = {key: value for key, value in flatten(plan.table(label)).items() if plan.ranged(value)}
    for k in range(20):
        options = flatten(plan.setting(label, k, 4.0).algorithm)
        for key, text in ranges.items():
            low, high = (float(end) for end in text.split(" ")[0].split(".."))
            factor = {"*": 4.0, "/": 0.25}.get(text[-3], 1.0)
            assert low * factor * 0.99 <= options[key] <= high * factor * 1.01
            assert isinstance(options[key], int) == (key == "k0")


LOST = {"dropout": 0.2}
MORE = [("GD", LOST), ("ProxSkip", {}), ("ProxSkip", LOST), ("FedAvg", {})]
SYSTEMS = [("GD", {}), ("FedAvg", LOST), *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE)]
GAUSSIAN = {"name": "gaussian", "clients": 6, "samples": 5, "features": 3, "seed": 1}
SEEN = plan.Facts(6, 3, 5.0, 1.0, 1.0, 0.5, True)


def made(label, number=0, rounds=5, selection="all", **more):
    """A run of a try on a small workload, and its curve."""
    workload = plan.Workload("w", "", "plain", {"data": GAUSSIAN, "selection": selection, **more}, rounds=rounds)
    ended = costs.run(workload, SEEN, plan.setting(label, number, 1.0), 7)
    return workload, ended, costs.curve(ended, 7)


@pytest.mark.parametrize(("label", "absent"), SYSTEMS)
def test_the_seconds_of_all_systems_are_those_that_runs_on_them_record(label, absent):
    """From one run on equal devices: who is selected and replies is known, and how often the work was done.

    Where nobody replies the server waits for the fastest, who is another on other devices: not so with this seed.
    """
    more = {"system": absent} if absent else {}
    workload, _, found = made(label, selection={"name": "uniform", "share": 0.5}, **more)
    for score, system in costs.systems(SEEN, None).items():
        study = plan.study(workload, plan.setting(label, 0, 1.0), 7)
        again = mpifed.run(study | {"system": system | absent}, progress=False)
        assert found.costs[score] == pytest.approx(again.rounds["simulated_seconds"])
        assert found.values["objective"].tolist() == again.rounds["objective"].tolist()
    bits = again.rounds["bits_up"] + again.rounds["bits_down"]
    assert found.costs["bits"].tolist() == (bits / 2).tolist()  # 32 bits a number in place of 64
    if label == "GD" and not absent:
        assert found.costs["passes"] == pytest.approx(np.arange(6) / 2)


def test_what_happens_before_round_one_is_charged_in_every_score():
    numbers, clients, tick = 3, 6, plan.rules().system.tick
    for label, up in (("L-BFGS", 32 * (numbers + 1)), ("EF21", 32 + 2), ("GD", None)):
        first = {score: of[0] for score, of in made(label)[2].costs.items()}
        if up is None:
            assert set(first.values()) == {0.0}
            continue
        down = 32 * numbers if label == "L-BFGS" else 0
        assert first["bits"] == clients * (up + down)
        assert first["passes"] == 1
        sent = up / 32 / numbers if label == "L-BFGS" else 1 / numbers
        away = tick * (1 + 1 + sent)  # latencies, x and the reply
        assert first["equal"] == pytest.approx(away + tick, rel=0.02)  # and a pass
        assert first["pareto"] >= first["equal"]


def test_a_class_of_a_users_own_is_charged_what_its_ledger_has_before_round_one(monkeypatch):
    own = {"label": "Own", "name": "mpifed.algorithms.lbfgs:LBFGS"}
    monkeypatch.setenv(plan.ENTERED, json.dumps(own))
    plan.shares.cache_clear()
    found, same = made("Own")[2].costs, made("L-BFGS")[2].costs
    assert {score: of.tolist() for score, of in found.items()} == {score: of.tolist() for score, of in same.items()}


def test_eight_bits_are_counted_as_such_and_all_else_at_32_bits_a_number():
    whole, short = (np.diff(made(label)[2].costs["bits"]) for label in ("L-BFGS", "8-bit L-BFGS"))
    assert set(whole) == {6 * 32 * (4 + 3)}
    up, down = 32 + 8 * 3 + 32, 32 + 8 * 3  # a norm, three levels and f up; a norm and three levels down
    assert short == pytest.approx(6 * (up + down))


def test_each_trial_point_of_newton_is_an_exchange_with_a_latency_and_a_value_of_f():
    _, ended, found = made("Newton")
    trials = np.diff(ended.result.rounds["exchanges"]) - 1
    assert (trials >= 1).all()
    assert np.diff(found.costs["passes"]) == pytest.approx(1 + 0.25 * 3 + 0.5 * trials)
    equal, tick = np.diff(found.costs["equal"]), plan.rules().system.tick
    down, up = 2, (2 + 3 + 3 * 4 // 2) / 3  # two models; f, ∇f, ∇²f and f at the trial point
    more = 1.5 * trials + (trials - 1)  # a latency both ways and half a pass; the models of all but the first
    assert equal == pytest.approx(tick * (1 + down + 1.75 + up + more))


def test_fedadmm_is_charged_the_inner_steps_that_it_takes():
    data = {"name": "gaussian", "clients": 6, "samples": 5, "features": 3, "seed": 1}
    workload = plan.Workload("w", "", "plain", {"data": data, "selection": "all"}, rounds=6)
    known = plan.Facts(6, 3, 5.0, 1.0, 1.0, 1.0, True)
    ended = costs.run(workload, known, plan.setting("FedADMM", 3, 1.0), 7)
    k0, steps = ended.config.algorithm.k0, ended.result.rounds["inner_steps"]
    found = costs.curve(ended, 7).costs["passes"]
    assert found == pytest.approx(np.arange(7) * (1 - k0) + steps / 6)
    assert found[-1] < 6 * (1 + 2 * k0)


def test_goals_leave_gaps_of_the_way_to_the_optimum_and_none_is_met_by_one_gradient_step():
    known = plan.facts()["logistic-wide"]
    workload = plan.workloads()["logistic-wide"]
    found, told = (msgspec.structs.asdict(facts) for facts in (goals.goals(workload), known))
    assert found.pop("columns") == told.pop("columns")
    assert found.pop("gradient") < 1e-6
    assert {name: pytest.approx(value, rel=1e-12) for name, value in told.items() if name != "gradient"} == found
    way = known.start - known.optimum
    assert known.columns == ["objective"] * 3
    assert np.array(known.goals) == pytest.approx(known.optimum + np.array(known.gaps) * way, rel=1e-12)
    pooled = goals.Pooled(workload)
    assert np.abs(pooled.gradients(pooled.start).mean(axis=0)).max() > 0
    x = pooled.start - pooled.gradients(pooled.start).mean(axis=0) / known.r
    assert pooled.f(x) > known.goals[0]


def test_a_workload_without_a_minimiser_is_refused(monkeypatch):
    data = {"name": "digits", "clients": 3, "partition": "iid", "seed": 1}
    flat = plan.Workload("flat", "", "plain", {"data": data, "problem": "softmax", "selection": "all"})
    with pytest.raises(UserError, match="flat has λ = 0, with which f may have no minimiser"):
        goals.goals(flat)
    short = msgspec.structs.replace(plan.rules(), goal=msgspec.structs.replace(plan.rules().goal, gradient=1e-16))
    monkeypatch.setattr(goals, "rules", lambda: short)
    with pytest.raises(RunError, match=r"logistic-many has no minimiser that a solver finds: \S+ of the first"):
        goals.goals(plan.workloads()["logistic-many"])


def test_networks_are_judged_by_validation_samples_whose_accuracy_is_to_rise():
    data = {"name": "digits", "clients": 5, "validation": 0.3, "seed": 1}
    study = {"data": data, "problem": {"name": "mlp", "hidden": [3]}, "selection": "all"}
    found = goals.goals(plan.Workload("net", "", "network", study, batch=8))
    loss, accuracy = found.goals[0], found.goals[2]
    assert found.optimum < loss < found.start
    assert found.gaps == plan.rules().goal.apart * 2
    assert found.accuracies == ["low"] * 4
    curve = costs.Curve(
        {"validation_objective": np.array([9.0, loss, loss]), "validation_accuracy": np.array([0.0, 0.0, accuracy])},
        dict.fromkeys(plan.SCORES, np.arange(3.0)),
    )
    assert costs.hits(curve, found)["bits"][::2] == [1.0, 2.0]


def test_a_goal_that_is_not_reached_or_a_run_that_diverges_is_a_miss():
    curve = costs.Curve({"objective": np.array([9.0, 2.0, 1.5])}, dict.fromkeys(plan.SCORES, np.array([0.0, 2.0, 4.0])))
    assert set(map(tuple, costs.hits(curve, KNOWN).values())) == {(2.0, math.inf)}
    assert set(map(tuple, costs.hits(None, KNOWN).values())) == {(math.inf, math.inf)}


def test_where_nothing_is_drawn_there_is_one_run_and_seeds_draw_devices_alone():
    assert not plan.random("mathematics-by-school", "GD")
    assert plan.random("mathematics-by-school", "ProxSkip")
    assert plan.random("logistic-wide", "GD")
    assert not plan.random("logistic-wide", "L-BFGS")
    assert plan.random("network-images", "L-BFGS")
    found = runs.carried_out([Task("logistic-many", "Newton", 0, seed) for seed in (0, 1)])
    first, second = (row.costs for row in found)
    for score in plan.SCORES:
        assert (first[score] == second[score]) == costs.one_of_each(score, False)


OWN = """
from mpifed.algorithms.gd import GD


class Twice(GD, tag="twice"):
    '''Gradient descent.'''
"""


def test_a_small_study_resumes_refuses_and_tells_and_a_class_of_a_users_own_enters_by_the_rules(
    small, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    assert done(small, "tune") == 2
    assert "goals.toml is missing" in capsys.readouterr().err
    assert done(small, "goals") == done(small, "tune") == 0
    rows = (small / "runs.jsonl").read_text().splitlines()
    learn = next(name for name, one in plan.workloads().items() if one.part == "tuning")
    judge = next(name for name in plan.workloads() if name != learn)
    assert all(row.startswith(f'["{learn}"') for row in rows)  # what is held out is not touched
    # a row that was cut off and one that is missing are run again, and nothing else
    (small / "runs.jsonl").write_text("\n".join([*rows[1:], rows[0][:20]]))
    assert done(small, "pack", "--plan", "full") == 2
    assert "runs are missing" in capsys.readouterr().err
    assert done(small, "tune") == 0
    assert "1 of 1 runs" in capsys.readouterr().err
    table = Table(small / "runs.jsonl")
    assert len(table.rows) == len(rows)
    costs = {row.task: row.costs for row in map(runs.parsed, rows)}
    assert {task: row.costs for task, row in table.rows.items()} == costs
    # held-out workloads stay closed until everything is fixed
    assert done(small, "held-out") == 2
    assert f"{judge} is held out, and lock.toml is missing" in capsys.readouterr().err
    assert done(small, "lock") == 2
    assert "decisions.toml is missing" in capsys.readouterr().err
    assert done(small, "decide") == done(small, "lock") == 0
    with (small / "rules.toml").open("a") as file:
        file.write("# changed\n")
    assert done(small, "held-out") == 2
    assert "rules.toml is not the file whose hash is in lock.toml" in capsys.readouterr().err
    assert done(small, "lock") == 2
    assert "held-out workloads can be opened once" in capsys.readouterr().err
    (small / "rules.toml").write_text(RULES)
    assert done(small, "page", "--plan", "full") == 2
    assert "runs are missing" in capsys.readouterr().err
    assert done(small, "held-out") == 0
    found = study.final(Table(small / "runs.jsonl"), "full", "held-out")
    assert {key[0] for key in found} == {judge}
    (small / "own.py").write_text(OWN)
    monkeypatch.chdir(small)
    assert done(small, "run", "--plan", "full", "--method", "own.py:Twice", "--range", "gamma=0.3..3 / r") == 0
    assert "Twice" in capsys.readouterr().out
    rows = Table(small / "own-full.jsonl").rows
    assert {task.method for task in rows} == {"Twice"}
    for words, sentence in (
        ((), "--method None is wrong: it must be FILE.py:CLASS"),
        (("--method", "none.py:X"), "--method none.py:X is wrong"),
        (("--method", "own.py:Twice", "--range", "gamma=3"), "--range gamma=3 is wrong: it must be OPTION=LOW..HIGH"),
        (("--method", "own.py:Twice", "--range", "gamma=a..3 / r"), "--range gamma=a..3 / r is wrong: it must be"),
    ):
        assert done(small, "run", "--plan", "full", *words) == 2
        assert sentence in capsys.readouterr().err


def test_rows_are_packed_with_version_machine_and_date_beside_those_of_rows_that_were_there(small):
    (small / "goals.toml").write_text(goals.text({"learn": KNOWN, "judge": KNOWN}))
    table = Table(small / "runs.jsonl")
    costs = {name: [1.0, math.inf] for name in plan.SCORES}
    table.add([Row(Task("learn", "GD", k, 0), costs, 0.5, runs.current("learn", "GD")) for k in (1, 0)])
    path = small / "packed.jsonl.gz"
    assert Table(small / "none", runs.pack(table, path)).rows == table.rows
    found = runs.made()
    assert (found.version, found.runs, found.cpu_seconds) == (mpifed.__version__, 2, 1.0)
    assert re.fullmatch(r".*cores.* \d{4}-\d\d-\d\d", f"{found.machine} {found.date}")
    (small / "made.toml").write_text((small / "made.toml").read_text().replace(found.date, "2026-01-02"))
    told = [runs.pack(kept, path) and runs.made() for kept in (Table(small / "none", path), table)]
    assert told == [found._replace(date=f"2026-01-02 to {found.date}"), found]


def test_data_that_are_missing_are_told_before_the_first_run(small, capsys):
    other = 'data = { name = "file", path = "nowhere.csv", clients = 2 }'
    (small / "workloads.toml").write_text(re.sub(r'data = \{ name = "linreg.*', other, SMALL))
    for step in ("goals", "all"):
        assert done(small, step) == 2
        assert "nowhere.csv" in capsys.readouterr().err
        assert not {path.name for path in small.iterdir()} & {"goals.toml", "runs.jsonl"}


def test_rows_of_other_rules_are_not_taken(small):
    (small / "goals.toml").write_text(goals.text({"learn": KNOWN, "judge": KNOWN}))
    missed = {name: [1.0, math.inf] for name in plan.SCORES}
    own = Row(Task("learn", "GD", 0, 0), missed, 0.5, runs.current("learn", "GD"))
    other = own._replace(task=Task("learn", "GD", 1, 0), key="of other rules")
    table = Table(small / "runs.jsonl")
    table.add([own, other, own._replace(task=Task("gone", "GD", 0, 0))])
    assert list(Table(small / "runs.jsonl").rows.values()) == [own]
