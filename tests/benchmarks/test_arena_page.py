"""The page of the arena, from made-up costs: cases, decisions, regrets, intervals, references, the text."""

import math
import re

import msgspec
import numpy as np
import pytest

from benchmarks.arena import __main__ as command
from benchmarks.arena import decide, outcome, plan, results, tables
from benchmarks.arena.decide import Choice
from benchmarks.arena.outcome import Case, Entry, Outcome
from benchmarks.arena.plan import HIGH, LOW
from benchmarks.arena.runs import Table
from benchmarks.arena.scores import MISS
from mpifed import UserError

INF = math.inf
STUDIES = plan.HERE.parent.parent / "docs" / "studies"
METHODS = ["GD", "FedAvg", "L-BFGS"]


def one(name="w", score="bits", goal=0, accuracy=LOW, **costs):
    return Case(name, score, goal, costs, accuracy)


def made_up(seed=0):
    """On the workloads of the rules: L-BFGS costs least and does not run where clients are absent, FedAvg is next."""
    rng, parts = np.random.default_rng(seed), {"tuning": {}, "held-out": {}}
    entries = {name: Entry(of, plan.facts()[name]) for name, of in plan.workloads().items()}
    for name, (of, known) in entries.items():
        for label in METHODS[: 2 if of.group == "absent" else 3]:
            level = {"GD": 3.0, "FedAvg": 1.5, "L-BFGS": 0.0}[label]
            for score in plan.SCORES:
                found = rng.normal(level, 0.1, (len(known.goals), 1)) + rng.normal(
                    0, 0.1, (1, 1 if label == "GD" else 3)
                )
                parts[of.part][name, label, score] = np.exp(found)
    return Outcome(parts["tuning"], parts["held-out"], METHODS, entries)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with the files that the page reads, those fixed before the held-out runs included."""
    for name in ("rules.toml", "workloads.toml", "goals.toml", "page.md", "explore.html"):
        (tmp_path / name).write_text(plan.file(name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(plan, "HERE", tmp_path)
    found = made_up()
    monkeypatch.setattr(decide, "compared", lambda: METHODS)
    (tmp_path / "settings.toml").write_text("# fixed\n")
    (tmp_path / "decisions.toml").write_text(decide.text(decide.decided(found.tuning), "full"))
    return tmp_path, found


def test_a_case_is_a_goal_that_a_median_reaches_and_has_those_methods_that_can_run():
    name = "logistic-wide"
    final = {
        (name, "A", "bits"): np.array([[1.0, 4.0, 2.0, 9.0], [1.0, 2.0, INF, INF], [5.0, INF, INF, INF]]),
        (name, "B", "bits"): np.array([[6.0], [8.0], [INF]]),
    }
    found = outcome.cases(final)
    assert found == [one(name, A=3.0, B=6.0), one(name, goal=1, A=INF, B=8.0)]
    assert [found[0].ratio(label) for label in "AB"] == [1.0, 2.0]
    assert [found[1].loss(label) for label in "AB"] == [math.log(MISS), 0.0]
    assert np.isnan([measure("C") for measure in (found[0].ratio, found[0].loss)]).all()


def test_goals_of_high_accuracy_are_those_with_small_gaps_of_f_and_validation_goals_are_not():
    assert plan.facts()["logistic-wide"].accuracies == [LOW, LOW, HIGH]
    assert set(plan.facts()["network-digits"].accuracies) == {LOW}
    found = [one("v", A=1.0), one("w", accuracy=HIGH, A=1.0)]
    assert outcome.of_accuracy(found, HIGH) == found[1:]


def test_the_choice_is_of_the_two_methods_that_lose_least_and_rests_on_three_workloads_each():
    able, less = np.array([1.0, 0.0, 2.0]), np.array([0.5, math.nan, 2.0])
    rows = {(f"w{k}", "bits"): able if k < 4 else less for k in range(7)}
    found = decide.made(rows, ["A", "B", "C"])
    assert (found.best, found.last) == ("B", "A")
    assert found.fewer == {"B, else A": 7}
    # on two workloads the second choice would rest on too few, so one method that runs everywhere is taken
    fewer = {key: lost for key, lost in rows.items() if key[0] not in ("w6",)}
    assert decide.two(fewer, ["A", "B", "C"]) == ("A", "A")
    with pytest.raises(UserError, match="no method runs on 9 tuning workloads"):
        decide.two(rows, ["A", "B", "C"], 9)
    with pytest.raises(UserError, match="no method reaches a goal of this accuracy"):
        decide.two({}, ["A"])


def test_a_method_that_cannot_run_loses_what_the_last_one_does_or_a_miss():
    rows = [np.array([0.0, 1.0]), np.array([math.nan, 2.0])]
    assert decide.totals(rows, 1).tolist() == [2.0, 3.0]
    assert decide.totals(rows, 0).tolist() == [math.log(MISS), 3.0]


def test_leaving_a_workload_out_tells_how_firm_a_choice_is(study):
    _folder, _ = study
    found = decide.read()
    assert {level: choice.words for level, choice in found.items()} == dict.fromkeys((LOW, HIGH), "L-BFGS, else FedAvg")
    assert "Left out in turn, 12 of 12 tuning workloads leave this choice as it is." in tables.firm(found[LOW])
    shaky = Choice("A", "A", {"A": 3, "B, else A": 2})
    assert tables.firm(shaky).endswith("3 of 5 tuning workloads leave this choice as it is, B, else A in 2.")


def test_regret_tells_misses_and_where_a_method_cannot_run_apart():
    cases = [one("v", A=1.0, B=3.0), one("w", A=INF, B=5.0), one("x", B=1.0), one("y", A=2.0, B=1.0)]
    found = results.regret(cases, decide.always("A"))
    assert (found.middle, found.within, found.missed, found.unable) == (2.0, 2, 1, 1)
    assert found.of == ["v", "w", "y"]
    assert results.regret(cases, Choice("A", "B", {}).pick).unable == 0
    assert [label for label, _ in results.ranked(cases, ["A", "B"])] == ["B", "A"]


def test_intervals_are_of_whole_workloads():
    same = results.Regret(np.repeat([1.0, 3.0], 50), ["v"] * 50 + ["w"] * 50, 0)
    assert same.interval(results.share_within) == (0.0, 1.0)  # two workloads: both draws of one alone are common
    many = results.Regret(np.tile([1.0, 3.0], 40), [f"w{k // 2}" for k in range(80)], 0)
    assert many.interval(results.share_within) == (0.5, 0.5)
    apart = results.Regret(np.array([1.0, 1.0, 1.0, INF]), list("abcd"), 0)
    low, high = apart.interval(results.middle)
    assert (low, high) == (1.0, INF)


def test_samples_sent_once_and_the_pooled_solver_stand_beside_the_least_of_all_methods():
    known = plan.Facts(4, 10, 5.0, 1.0, 1.0, 1.0, True, numbers=200, pooled=[6.0, -1.0], gaps=[0.1, 0.01])
    entries = {"w": Entry(plan.workloads()["logistic-wide"], known)}
    costs = [one(score=score, A=100.0) for score in results.TOLD]
    once = [results.reference(entries["w"], case)[results.ONCE] for case in costs]
    tick = plan.rules().system.tick
    assert once == pytest.approx([32 * 200, 6.0, tick / 2 + tick * 5 + tick * 6])  # 5 times a model, then 6 passes
    pooled = [results.reference(entries["w"], case)[results.POOLED] for case in costs]
    assert math.isnan(pooled[0])
    assert pooled[1:] == pytest.approx([6.0, 6 * tick])
    assert results.reference(entries["w"], one(goal=1, A=1.0))[results.ONCE] == INF
    assert results.beside(costs, entries, "bits", results.ONCE) == (1, 0, 64.0)
    assert results.beside(costs, entries, "passes", results.POOLED) == (1, 1, 0.06)
    assert results.beside(costs, entries, "bits", results.POOLED) is None


def test_the_page_begins_with_the_answer_and_a_picture_and_is_written_whole_and_briefly(study):
    pytest.importorskip("matplotlib")
    from benchmarks.arena import page

    folder, of = study
    told = msgspec.to_builtins(plan.rules().plan["quick"])
    told |= {
        "ends": tables.ends({"bits": {"GD": 0, "L-BFGS": 0}}, 2),
        "called": "full",
        "runs": "9",
        "minutes": "1",
        "made": " here",
    }
    path = page.written(of, told, folder / "to")
    text = path.read_text("utf-8")
    lines = [line for line in text.splitlines() if line]
    assert lines[1] == "**L-BFGS, else FedAvg.**"
    assert lines[2].startswith("![Profiles")
    assert "{" not in text
    for words in (
        "To **low** accuracy L-BFGS, else FedAvg costs 1.00",
        "To **high** accuracy L-BFGS, else FedAvg costs",
    ):
        assert words in text
    assert "1 of 1 numbers" in text  # of two tries either is an end
    assert len(re.findall(r"\*samples sent once\*", text)) == len(re.findall(r"\*pooled solver\*", text)) == 2
    assert all(value in text for value in plan.hashes().values())
    assert len([word for line in lines if not line.startswith("|") for word in line.split()]) < 1500
    assert all((path.parent / target).exists() for target in re.findall(r"\]\(((?:pictures|arena)[^)]*)\)", text))


@pytest.mark.slow
def test_the_page_is_what_the_committed_rows_give(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from benchmarks.arena import page

    monkeypatch.setattr(page, "DOCS", tmp_path)
    written = page.DOCS / "arena.md"
    assert page.write(Table(tmp_path / "none", command.COMMITTED), "committed", tmp_path) == written
    for name in ("arena.md", "arena-explore.html"):
        assert (tmp_path / name).read_text("utf-8") == (STUDIES / name).read_text("utf-8")
