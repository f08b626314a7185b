"""The arena: settings in units, costs of a run, goals, resuming, the lock, decisions, and the page of a small study."""

import json
import math
import re

import numpy as np
import pytest

import mpifed
from benchmarks.arena import __main__ as command
from benchmarks.arena import costs, goals, lock, plan, runs, scores
from benchmarks.arena.runs import Row, Table, Task
from mpifed.core.toml import flat

STUDIES = plan.HERE.parent.parent / "docs" / "studies"
SMALL = """
[[workload]]
name = "learn"
about = "a quadratic"
part = "tuning"
study.data = { name = "quadratic", clients = 4, features = 3, mu = 0.2, seed = 1 }
study.selection = { name = "uniform", share = 0.5 }

[[workload]]
name = "judge"
about = "least squares"
part = "held-out"
study.data = { name = "linreg-noniid", clients = 4, features = 3, least = 5, most = 9, seed = 1 }
study.selection = "all"
"""
RULES = """
[plan.full]
tries = 2
after = [1, 2]
seeds = 2
methods = 2

[goal]
references = ["GD"]
tries = 2
seed = 900
rounds = 4
gaps = [0.3, 0.1]
cap = 10.0

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

[[method]]
label = "GD"
name = "gd"
gamma = "0.3..3 / r"

[[method]]
label = "FedGiA"
name = "fedgia"
k0 = "1..3"
t = "0.05..0.5"
"""
KNOWN = plan.Facts(4, 3, 10.0, 2.0, 1.0, 0.5, True, [2.0, 1.0], {name: [5.0, 10.0] for name in plan.SCORES})


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The folder of a study of two workloads, two methods and two tries."""
    cached = (plan.workloads, plan.rules, plan.later, plan.facts, plan.shares)
    (tmp_path / "workloads.toml").write_text(SMALL)
    (tmp_path / "rules.toml").write_text(RULES)
    for name in ("page.md", "explore.html"):
        (tmp_path / name).write_text(plan.file(name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(plan, "HERE", tmp_path)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


def done(folder, *words):
    return command.main([*words, "--to", str(folder), "--processes", "1"])


def test_workloads_and_rules_are_what_the_comparison_promises():
    found = plan.workloads().values()
    assert 16 <= len(found) <= 20
    parts = [one.part for one in found]
    assert parts.count("tuning") == 2 * parts.count("held-out")
    tables = [one.study.get("problem") for one in found]
    assert sum("mlp" in str(table) or "nonconvex" in str(table) for table in tables) >= 4
    assert sum(one.batch > 0 for one in found) >= 4
    assert sum("client" in one.study["data"] for one in found) >= 4
    assert plan.rules().plan["full"] == plan.Plan(20, [1, 5, 20], 10, len(plan.labels()))
    assert set(plan.facts()) == set(plan.workloads())
    assert not any("x*" in str(value) for value in flat(plan.rules().method[0]).values())


@pytest.mark.parametrize("label", plan.labels())
def test_tries_stay_in_their_ranges_whose_unit_is_r_and_a_longer_list_begins_with_a_shorter_one(label):
    few, many = plan.shares(label, 6), plan.shares(label, 20)
    assert many[:6] == few
    ranges = {key: value for key, value in flat(plan.table(label)).items() if plan.ranged(value)}
    for k in range(20):
        options = flat(plan.setting(label, k, 4.0).algorithm)
        for key, text in ranges.items():
            low, high = (float(end) for end in text.split(" ")[0].split(".."))
            factor = {"*": 4.0, "/": 0.25}.get(text[-3], 1.0)
            assert low * factor * 0.99 <= options[key] <= high * factor * 1.01
            assert isinstance(options[key], int) == (key == "k0")


@pytest.mark.parametrize("label", ["GD", "ProxSkip", "Newton"])
def test_the_seconds_of_all_systems_are_those_that_runs_on_them_record(label):
    """From one run on equal devices: who is selected is known, and how often the work was done."""
    data = {"name": "gaussian", "clients": 6, "samples": 5, "features": 3, "seed": 1}
    study = {"data": data, "selection": {"name": "uniform", "share": 0.5}}
    workload = plan.Workload("w", "", "tuning", study)
    known = plan.Facts(6, 3, 5.0, 1.0, 1.0, 0.5, True)
    one = plan.setting(label, 0, 1.0)
    found = costs.run(workload, known, one, 7, 5)
    passes = 1 + 0.25 * 3 if label == "Newton" else None
    for score, system in costs.systems(known, passes).items():
        again = mpifed.run(plan.study(workload, one, 7) | {"system": system, "rounds": 5}, progress=False)
        assert found.costs[score] == pytest.approx(again.rounds["simulated_seconds"])
        assert found.f.tolist() == again.rounds["objective"].tolist()
    bits = again.rounds["bits_up"] + again.rounds["bits_down"]
    assert found.costs["bits"].tolist() == bits.tolist()
    if label == "GD":
        assert found.costs["passes"] == pytest.approx(np.arange(6) / 2)
    if label == "Newton":
        assert found.costs["passes"] == pytest.approx(np.arange(6) * 1.75)


def curve(f, **cost):
    per_round = {name: cost.get(name, 1.0) for name in plan.SCORES}
    return costs.Curve(np.array(f), {name: np.arange(len(f)) * value for name, value in per_round.items()})


def test_goals_lie_between_the_start_and_the_best_reference_and_cost_what_the_cheapest_pays():
    found = goals.with_goals(KNOWN, [curve([10.0, 4.0, 2.0, 0.0], bits=2.0), curve([10.0, 0.9, 5.0, 5.0])], [0.5, 0.1])
    assert found.goals == [5.0, 1.0]
    assert found.reference["bits"] == [1.0, 1.0]
    assert found.reference["passes"] == [1.0, 1.0]
    assert goals.least([curve([10.0, 4.0, 2.0, 0.0], bits=2.0)], "bits", 1.0) == 6.0


def test_a_goal_that_is_not_reached_or_too_dear_or_a_run_that_diverges_is_a_miss():
    slow = costs.hits(curve([9.0] * 51 + [1.5] * 60, bits=2.0), KNOWN)
    assert slow["bits"] == [math.inf, math.inf]  # 102 is more than ten times 5
    assert slow["passes"] == [math.inf, math.inf]
    assert costs.hits(curve([9.0, 2.0, 1.5]), KNOWN)["equal"] == [1.0, math.inf]
    assert set(map(tuple, costs.hits(None, KNOWN).values())) == {(math.inf, math.inf)}


def test_a_small_study_resumes_refuses_and_tells(small, capsys):
    assert done(small, "tune") == 2
    assert "goals.toml is missing" in capsys.readouterr().err
    assert done(small, "goals") == 0
    assert done(small, "tune") == 0
    rows = (small / "runs.jsonl").read_text().splitlines()
    assert all(json_row.startswith('["learn"') for json_row in rows)  # what is held out is not touched
    # a row that was cut off and one that is missing are run again, and nothing else
    (small / "runs.jsonl").write_text("\n".join([*rows[1:], rows[0][:20]]))
    capsys.readouterr()
    assert done(small, "tune") == 0
    assert "1 of 1 runs" in capsys.readouterr().err
    table = Table(small / "runs.jsonl")
    assert len(table.rows) == len(rows)
    assert costs_of(table.rows.values()) == costs_of(map(runs.parsed, rows))
    # held-out workloads stay closed until everything is fixed
    assert done(small, "held-out") == 2
    assert "judge is held out, and lock.toml is missing" in capsys.readouterr().err
    assert done(small, "lock") == 2
    assert "decisions.toml is missing" in capsys.readouterr().err
    assert done(small, "decide") == 0
    assert done(small, "lock") == 0
    with (small / "rules.toml").open("a") as file:
        file.write("# changed\n")
    assert done(small, "held-out") == 2
    assert "rules.toml is not the file whose hash is in lock.toml" in capsys.readouterr().err
    assert done(small, "lock") == 2
    assert "held-out workloads can be opened once" in capsys.readouterr().err
    (small / "rules.toml").write_text(RULES)
    assert done(small, "page") == 2
    assert "runs are missing" in capsys.readouterr().err


def test_seeds_that_are_added_later_run_with_the_settings_and_decisions_that_were_fixed(small, capsys):
    for step in ("goals", "tune", "decide", "lock", "all"):
        assert done(small, step) == 0
    fixed = [(small / name).read_bytes() for name in lock.FIXED]
    before = Table(small / "runs.jsonl").rows
    later(small, "full = 3")
    assert done(small, "all") == 0
    after = Table(small / "runs.jsonl").rows
    assert costs_of(after[task] for task in before) == costs_of(before.values())
    new = after.keys() - before.keys()
    assert {task.seed for task in new} == {2}
    assert {task[:3] for task in new} <= {task[:3] for task in before}
    assert done(small, "decide") == 0  # which rests on the seeds of rules.toml alone
    assert [(small / name).read_bytes() for name in lock.FIXED] == fixed
    later(small, "full = 1")
    assert done(small, "tune") == 2
    assert "seeds can only be added to the 2 of rules.toml" in capsys.readouterr().err
    later(small, "full = 3")
    pytest.importorskip("matplotlib")
    assert done(small, "page") == 0
    text = (small / "arena.md").read_text("utf-8")
    assert "final runs with 3 seeds" in text
    assert "Seeds 2 to 2, which that rule had dropped, were added when a page of seeds 0 to 1 had been written" in text
    assert "On 1 held-out workloads" in text
    assert all(value in text for value in lock.hashes().values())
    assert all((small / target).exists() for target in re.findall(r"\]\(((?:pictures|arena)[^)]*)\)", text))
    data = json.loads(re.search(r"const data = (.*);", (small / "arena-explore.html").read_text("utf-8"))[1])
    assert [one["name"] for one in data["workloads"]] == ["learn", "judge"]
    assert np.shape(data["costs"]) == (2, len(plan.SCORES), 3, 2, 2, 2)


def later(folder, text):
    (folder / "later.toml").write_text(text)
    plan.later.cache_clear()


def test_data_that_are_missing_are_told_before_the_first_run(small, capsys):
    other = 'data = { name = "file", path = "nowhere.csv", clients = 2 }'
    (small / "workloads.toml").write_text(re.sub(r'data = \{ name = "linreg.*', other, SMALL))
    for step in ("goals", "all"):
        assert done(small, step) == 2
        assert "nowhere.csv" in capsys.readouterr().err
        assert not (small / "goals.toml").exists()
        assert not (small / "runs.jsonl").exists()


def costs_of(rows):
    return {row.task: row.costs for row in rows}


def test_rows_of_other_rules_are_not_taken(small):
    (small / "goals.toml").write_text(goals.text({"learn": KNOWN, "judge": KNOWN}))
    missed = {name: [1.0, math.inf] for name in plan.SCORES}
    own = Row(Task("learn", "GD", 0, 0), missed, 0.5, runs.current("learn", "GD"))
    other = own._replace(task=Task("learn", "GD", 1, 0), key="of other rules")
    table = Table(small / "runs.jsonl")
    table.add([own, other, own._replace(task=Task("gone", "GD", 0, 0))])
    assert list(Table(small / "runs.jsonl").rows.values()) == [own]


def test_the_best_try_is_that_of_the_hardest_goal_and_then_of_easier_ones():
    inf = math.inf
    assert min([[1.0, 9.0, inf], [5.0, 7.0, inf], [9.0, 9.0, 30.0]], key=scores.order) == [9.0, 9.0, 30.0]
    assert min([[1.0, 9.0, inf], [5.0, 7.0, inf], [1.0, inf, inf]], key=scores.order) == [5.0, 7.0, inf]
