"""The page of the arena, from made-up costs: cases, decisions, regrets, intervals, ranks, the mixed model, the text."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from benchmarks.arena import __main__ as command
from benchmarks.arena import decide, mixed, outcome, plan, results, tables
from benchmarks.arena.decide import Decisions
from benchmarks.arena.outcome import Case, Entry, Outcome
from benchmarks.arena.runs import Table
from benchmarks.arena.scores import CARRIED, MISS, OWN
from mpifed.report.statistics import BootstrapBand

INF = math.inf
STUDIES = plan.HERE.parent.parent / "docs" / "studies"
METHODS = ["GD", "FedAvg", "Newton", "FedGiA"]


def entry(part="tuning", **changes):
    known = Entry(part, "made up", "plain", 0, 10, 20, 1.0, 0.5, True, [0.1, 0.01])
    return known._replace(**changes)


def one(name="w", score="bits", goal=0, **costs):
    return Case(name, score, goal, costs)


def made_up(seed=0, workloads=24):
    """Networks are the workloads that FedGiA and Newton cannot run on, and FedAvg is best there; FedGiA elsewhere."""
    rng, entries = np.random.default_rng(seed), {}
    parts = {"tuning": {}, "held-out": {}}
    for k in range(workloads):
        part, network = ("held-out" if k % 2 else "tuning"), k % 4 > 1
        group = "network" if network else "plain"
        seen = {"n": [20, 200][k // 4 % 2], "skew": 1.0 + k // 8, "share": [0.2, 0.5][k // 2 % 3 % 2]}
        entries[f"w{k}"] = entry(part, curved=not network, group=group, **seen)
        for label in METHODS[: 2 if network else 4]:
            level = {"GD": 3.0, "FedAvg": 0.0 if network else 2.0, "Newton": 2.5, "FedGiA": 0.0}[label]
            seeds = 1 if label == "GD" else 4
            for score in plan.SCORES:
                found = rng.normal(level, 0.2, (2, 1)) + rng.normal(0, 0.1, (2, seeds)) + [[0.0], [1.0]]
                costs = np.exp(k + found)
                costs[1] = np.inf if label == "Newton" else costs[1]
                parts[part][f"w{k}", label, score, CARRIED] = costs
                if part == "held-out" and label != "Newton":
                    parts[part][f"w{k}", label, score, OWN] = costs[:, :3] / 2
    return Outcome(parts["tuning"], parts["held-out"], METHODS, entries)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with the files that the page reads, those fixed before the held-out runs included."""
    for name in ("rules.toml", "page.md", "explore.html"):
        (tmp_path / name).write_text(plan.file(name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(plan, "HERE", tmp_path)
    found = made_up()
    rule = decide.made(decide.losses(outcome.cases(found.tuning), METHODS), found.entries, METHODS)
    for name in plan.FIXED:
        path = tmp_path / name
        path.write_text(path.read_text("utf-8") if path.exists() else "# fixed\n", "utf-8")
    (tmp_path / "decisions.toml").write_text(decide.text(rule._replace(plan="full")))
    return tmp_path, found


def test_a_case_is_a_goal_that_a_median_with_settings_carried_reaches_and_has_those_methods_that_can_run():
    final = {
        ("w", "A", "bits", CARRIED): np.array([[1.0, 4.0, 2.0, 9.0], [1.0, 2.0, INF, INF], [5.0, INF, INF, INF]]),
        ("w", "B", "bits", CARRIED): np.array([[6.0], [8.0], [INF]]),
        ("w", "B", "bits", OWN): np.array([[1.0], [1.0], [1.0]]),
    }
    found = outcome.cases(final)
    assert found == [one(A=3.0, B=6.0), one(goal=1, A=INF, B=8.0)]
    assert [found[0].ratio(label) for label in "AB"] == [1.0, 2.0]
    assert [found[1].loss(label) for label in "AB"] == [math.log(MISS), 0.0]
    assert [found[0].within(label) for label in "AB"] == [1.0, 1.0]
    assert np.isnan([measure("C") for measure in (found[0].ratio, found[0].loss, found[0].within)]).all()
    assert outcome.without(found, "B") == [one(A=3.0)]


def test_a_decision_is_that_of_the_row_with_most_features_whose_method_can_run():
    rows = {("bits", "", "", "", ""): "A", ("bits", "", "network", "", ""): "B", ("", "", "plain", "", ""): "C"}
    found = Decisions("full", 1.0, "C", "A", ["counted", "model"], rows)
    network, plain = ("bits", "too dear", "network", "weak", "few"), ("seconds", "too dear", "plain", "weak", "few")
    assert found.method(network, "ABC") == "B"
    assert found.method(network, "AC") == "A"
    assert found.method(network, "C") == "C"
    assert found.method(plain, "AB") == "A"  # the last one where neither row nor best can run
    assert found.words == "C, and A where that cannot run"
    assert decide.needless(found, "ABC").rows == {cell: label for cell, label in rows.items() if label != "C"}


def test_the_table_has_the_features_that_decide_and_no_others(study):
    folder, of = study
    rule = decide.read()
    assert (rule.best, rule.last, rule.used) == ("FedGiA", "FedAvg", [])  # who can run decides: no feature is needed
    assert Decisions(**rule._asdict()) == rule
    losses = decide.losses(outcome.cases(of.tuning), METHODS)
    everywhere = {key: np.where(np.isnan(lost), 1.5, lost) for key, lost in losses.items()}
    found = decide.made(everywhere, of.entries, METHODS)
    assert found.used == ["model"]
    assert found.rows == {("", "", "network", "", ""): "FedAvg"}
    (folder / "decisions.toml").write_text(decide.text(found))
    assert decide.read() == found


def test_a_method_that_cannot_run_loses_what_the_last_one_does_or_a_miss():
    rows = [np.array([0.0, 1.0]), np.array([math.nan, 2.0])]
    assert decide.totals(rows, 1).tolist() == [2.0, 3.0]
    assert decide.totals(rows, 0).tolist() == [math.log(MISS), 3.0]


def test_regret_tells_misses_and_where_a_method_cannot_run_apart():
    cases = [one("v", A=1.0, B=3.0), one("w", A=INF, B=5.0), one("x", B=1.0), one("y", A=2.0, B=1.0)]
    found = results.regret(cases, decide.always("A"))
    assert (found.middle, found.within, found.missed, found.unable) == (2.0, 2, 1, 1)
    assert results.Regret([1.0, INF], 0).middle == INF
    assert results.Regret([], 3).middle == INF
    assert results.hindsight(cases, ["A", "B"]) == "B"
    apart = results.difference(cases, decide.always("B"), decide.always("A"))
    assert apart.middle[0] == pytest.approx(0.25)
    assert apart.low[0] < 0 < apart.high[0]


def test_intervals_are_of_paired_differences_over_the_workloads_that_have_both():
    rng = np.random.default_rng(1)
    workloads = rng.normal(0, 5, 20)
    values = np.column_stack([workloads, workloads + 1 + rng.normal(0, 0.2, 20), np.full(20, math.nan)])
    values[:3, 1] = math.nan
    found = results.interval(values[:, [1]] - values[:, [0]])
    own = (values[3:, 1] - values[3:, 0],)
    same = stats.bootstrap(own, np.mean, confidence_level=0.95, method="percentile", rng=1).confidence_interval
    assert found.middle[0] == pytest.approx(np.mean(own))
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(same), abs=0.02)
    alone = results.interval(values)
    assert alone.low[1] < alone.low[0] + 5
    assert math.isnan(alone.middle[2])


def standing_cases():
    """B is within twice on all ten workloads, A on six of them, and C, which runs on six, on all but one."""
    return [
        one(f"w{k}", A=1.0 if k < 6 else 9.0, B=1.5 if k < 6 else 1.0, **({"C": 1.9 if k else 3.0} if k < 6 else {}))
        for k in range(10)
    ]


def test_a_method_is_behind_where_another_has_a_larger_share_on_the_workloads_where_both_run():
    found = results.standing(standing_cases(), ["A", "B", "C", "D"])
    assert found.within.middle[:3] == pytest.approx([0.6, 1.0, 5 / 6])
    assert found.where == [10, 10, 6, 0]
    assert found.best == [False, True, True, True]


def test_pairs_are_tested_by_workload_and_few_workloads_are_not_enough():
    cases = [one(f"w{k}", A=1.0, B=1.0 + k, **({"C": 2.0} if k < results.FEW - 1 else {})) for k in range(9)]
    cases += [one("w0", goal=1, A=1.0, B=INF)]
    (pair,) = results.pairs(cases, ["B", "A", "C"])
    assert pair[:4] == ("A", "B", 9, 0)
    assert pair.p == pytest.approx(stats.wilcoxon([math.log(MISS) / 2, *np.log(np.arange(2, 10))]).pvalue)


def test_ranks_keep_the_place_free_of_a_method_that_is_left_out():
    cases = [one(f"w{k}", A=1.0, B=1.9 if k else 9.0, C=2.1) for k in range(2)]
    a, b, c = results.ranks(cases, list("ABC"))
    assert a == results.Rank(1, (1, 1), (1, 1))
    # without A B is behind C; without w0 it ties with A, without w1 with C
    assert b == results.Rank(2, (2, 3), (1, 2))
    assert c == results.Rank(3, (2, 3), (2, 3))


def test_the_mixed_model_finds_where_a_feature_decides_which_method_costs_less():
    pytest.importorskip("statsmodels")
    of = made_up()
    cases = results.of_score(outcome.cases(of.both), "bits")
    found = {one.feature: one for one in mixed.checks(cases, of.entries, METHODS, 1.5)}
    assert found.keys() == {"curvature", "model", "skew", "share"}
    assert found["model"].p < 1e-6
    assert found["model"].first == {"network": "FedAvg", "plain": "FedAvg"}  # FedGiA does not run on both
    assert (found["model"].freedom[0], found["skew"].freedom[0]) == (1, 3)
    assert found["skew"].p > 0.01
    assert mixed.check(np.ones((6, 2)), ["a"] * 6, ["A", "B"]) is None


def test_of_two_methods_the_mixed_model_is_the_t_test_of_their_differences():
    pytest.importorskip("statsmodels")
    rng = np.random.default_rng(3)
    costs = rng.normal(0, 3, (16, 1)) + rng.normal(0, 1, (16, 2))
    values = ["a", "b"] * 8
    apart = costs[:, 1] - costs[:, 0]
    found, expected = mixed.check(costs, values, ["A", "B"]), stats.ttest_ind(apart[::2], apart[1::2])
    assert found.freedom == (1, 14)
    assert found.statistic == pytest.approx(expected.statistic**2, rel=1e-3)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-3)


BETTER, SAME = (BootstrapBand(*np.array([[0.2], [low], [0.3]])) for low in (0.1, -0.1))


@pytest.mark.parametrize(
    ("apart", "rows", "words"),
    [
        (BETTER, {("bits", "", "", "", ""): "B"}, "Take the method that the table below names."),
        (SAME, {("bits", "", "", "", ""): "B"}, "A table by features cannot be told from it"),
        (BootstrapBand(*(-edge for edge in BETTER)), {("bits", "", "", "", ""): "B"}, "A table by features is worse"),
        (SAME, {}, "No feature of the tuning workloads names another. W"),
    ],
)
def test_the_answer_is_the_table_or_that_one_method_is_enough(apart, rows, words):
    single, other = results.Regret([1.0, 2.0, 4.0, INF], 0), results.Regret([1.0], 3)
    found = tables.Choices(other, single, "C", single, apart)
    text = tables.headline(found, Decisions("full", 1.0, "A", "B", [], rows), 6, "W")
    assert words in text
    assert ("One method is enough: A, and B where that cannot run." in text) == (apart is not BETTER)
    assert "costs 3.00 times the least in the median, is within twice the least in 2 of 4 cases, misses 1" in text
    assert "In hindsight C everywhere" in text
    poor = tables.headline(found._replace(single=other), Decisions("full", 1.0, "A", "B", [], rows), 6, "W")
    assert ("No method is enough, and no table is better than one: A, and B" in poor) == (apart is not BETTER)


@pytest.mark.parametrize("checked", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_page_is_written_whole_and_briefly(study, checked, monkeypatch):
    """``checked``: with the mixed model, which needs statsmodels and takes long."""
    pytest.importorskip("statsmodels" if checked else "matplotlib")
    from benchmarks.arena import page

    folder, of = study
    monkeypatch.setattr(mixed, "installed", lambda: checked)
    told = dict.fromkeys(plan.rules().plan["quick"].__struct_fields__, 2)
    path = page.written(of, told | {"called": "full", "runs": "9", "hours": "1.0", "made": " here"}, folder / "to")
    text = path.read_text("utf-8")
    assert "{" not in text
    assert "**One method is enough: FedGiA, and FedAvg where that cannot run." in text
    assert "| one for all: FedGiA, and FedAvg where that cannot run | 120 | 1.00 | 120 (100%) | 0 (0%) | 0 |" in text
    assert "| always FedGiA | 60 | 1.00 | 60 (100%) | 0 (0%) | 60 |" in text
    assert "| always Newton | 60 | a miss | 0 (0%) | 30 (50%) | 60 |" in text
    assert all(value in text for value in plan.hashes().values())
    assert len([word for line in text.splitlines() if not line.startswith("|") for word in line.split()]) < 1800
    assert all((path.parent / target).exists() for target in re.findall(r"\]\(((?:pictures|arena)[^)]*)\)", text))
    assert "| FedGiA | " in text.split("## Pairs")[1].split("##")[0]
    assert (page.WITHOUT in text) == (not checked)
    counts = re.search(r"Of (\d+) such tests .* are significant .* for all\n(\d+) tests", text)
    assert int(counts[1]) == 5 * 6
    assert int(counts[2]) == 5 * 6 + 5 * 4 * checked


def test_without_statsmodels_the_committed_page_stays_as_it_is(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    from benchmarks.arena import page

    monkeypatch.setattr(mixed, "installed", lambda: False)
    monkeypatch.setattr(page, "DOCS", tmp_path / "docs")
    assert command.main(["page", "--to", str(tmp_path)]) == 2
    assert "the committed page has tests that need statsmodels" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


@pytest.mark.slow
def test_the_page_is_what_the_committed_rows_give(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("statsmodels")
    from benchmarks.arena import page

    monkeypatch.setattr(page, "DOCS", tmp_path)
    written = page.DOCS / "arena.md"
    assert page.write(Table(tmp_path / "none", command.COMMITTED), "committed", tmp_path) == written
    for name in ("arena.md", "arena-explore.html"):
        assert (tmp_path / name).read_text("utf-8") == (STUDIES / name).read_text("utf-8")
