"""The page of results, docs/studies/arena.md, with its pictures: page.md filled in from rows."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.arena import decide, runs, study, tables
from benchmarks.arena.outcome import Outcome, cases, outcome
from benchmarks.arena.plan import HELD, HERE, HIGH, LOW, SCORES, TUNING, facts, file, refuse_unlocked, rules, table
from benchmarks.arena.runs import Table
from benchmarks.arena.scores import MISS, names
from benchmarks.arena.tables import SCORE_WORDS
from mpifed.core.files import replace_file
from mpifed.core.typing import Array
from mpifed.report import profile
from mpifed.report.style import DOUBLE, save

DOCS = HERE.parent.parent / "docs" / "studies"
DRAWN = ("bits", "equal")  # scores with a picture


def write(found: Table, called: str, folder: Path) -> Path:
    """Write the page and what belongs to it: of the plan "committed" into the docs, else into ``folder``."""
    own = study.plan(called)
    refuse_unlocked(names(own, HELD))
    judged = outcome(study.final(found, called, TUNING), study.final(found, called, HELD))
    seconds = sum(row.seconds for row in found.rows.values())
    cost = {"called": called, "runs": f"{len(found.rows):,}", "minutes": f"{seconds / 60:.0f}", "made": ""}
    if called == "committed":
        of = runs.made()
        cost["made"] = f" on {of.machine}, mpifed {of.version} ({of.commit}), {of.date}"
    cost["ends"] = tables.ends(study.settings(called), own.tries)
    return written(judged, msgspec.to_builtins(own) | cost, DOCS if called == "committed" else folder)


def written(judged: Outcome, told: dict[str, object], folder: Path) -> Path:
    """Write it into a folder; ``told``: what page.md asks for of the plan and its runs."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for score in DRAWN:
        draw(judged, score, folder / "pictures" / f"arena-{score}.png")
    for name, content in {"arena.md": text(judged, told), "arena-explore.html": explore(judged)}.items():
        with replace_file(folder / name, True) as part:
            part.write_text(content, "utf-8")
    return folder / "arena.md"


def draw(judged: Outcome, score: str, path: Path) -> None:
    """The profiles of all methods on the held-out workloads."""
    groups: dict[str, list[list[float]]] = {}
    for one in cases(judged.held):
        if one.score == score:
            groups.setdefault(one.workload, []).append([one.costs.get(label, np.inf) for label in judged.labels])
    called = [table(label)["name"] for label in judged.labels]
    costs = profile.Costs(list(judged.labels), called, [np.array(rows) for rows in groups.values()])
    save(profile.plot_profile(costs, SCORE_WORDS[score], width=DOUBLE, band="none"), path, force=True)


def text(judged: Outcome, told: dict[str, object]) -> str:
    """The page."""
    decisions, held = decide.read(), cases(judged.held)
    apart = [name for name, one in judged.entries.items() if one.workload.part == HELD]
    filled = {
        "answer": tables.answer(decisions),
        "headline": tables.headline(held, decisions, len(apart)),
        "table_low": tables.regrets(held, judged, decisions, LOW),
        "table_high": tables.regrets(held, judged, decisions, HIGH),
        "by_score": tables.by_score(held, decisions),
        "by_workload": tables.by_workload(cases(judged.both), judged),
        "about": tables.about(judged),
        "hashes": tables.hashes(),
        "enough": decide.ENOUGH,
        "miss": MISS,
        "held": len(apart),
        "methods": len(judged.labels),
    }
    goal, ticks = (msgspec.to_builtins(one) for one in (rules().goal, rules().system))
    curvature = msgspec.to_builtins(rules().curvature)
    parts = told | filled | goal | ticks | curvature | {"half": rules().system.tick / 2}
    return file("page.md").read_text("utf-8").format(**parts)


DIGITS = 4  # significant digits of a cost


def explore(outcome: Outcome) -> str:
    """The page with every median."""
    goals = list(dict.fromkeys(words for name in outcome.entries for words in goal_names(name)))
    entries = outcome.entries.items()
    data = {
        "workloads": [{"name": name, "part": one.workload.part, "about": one.workload.about} for name, one in entries],
        "methods": list(outcome.labels),
        "scores": [SCORE_WORDS[score] for score in SCORES],
        "goals": goals,
        "costs": [
            [[cells(outcome, (name, label, score), goals) for label in outcome.labels] for score in SCORES]
            for name in outcome.entries
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return file("explore.html").read_text("utf-8").replace("/*DATA*/", text)


def goal_names(name: str) -> list[str]:
    """The goals of a workload in words."""
    return [tables.goal_words(facts()[name], k) for k in range(len(facts()[name].goals))]


def cells(outcome: Outcome, of: tuple[str, str, str], goals: list[str]) -> list[list[Any]] | None:
    """Of each goal the median cost, null for a miss, with the numbers of seeds that reach it and in all.

    Null where a method cannot run; an empty list for what is no goal of the workload.
    """
    costs = outcome.both.get(of)
    if costs is None:
        return None
    found = dict(zip(goal_names(of[0]), costs, strict=True))
    return [cell(found[goal]) if goal in found else [] for goal in goals]


def cell(costs: Array) -> list[Any]:
    """The median cost over seeds, and how many of them reach the goal."""
    middle = float(np.median(costs))
    known = float(f"{middle:.{DIGITS}g}") if np.isfinite(middle) else None
    return [known, int(np.isfinite(costs).sum()), len(costs)]
