"""The page of results, docs/studies/arena.md, with its pictures: page.md filled in from rows."""

import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.arena import decide, mixed, runs, study, tables
from benchmarks.arena.decide import Decisions
from benchmarks.arena.mixed import Checked
from benchmarks.arena.outcome import Case, Outcome, cases, outcome
from benchmarks.arena.plan import HELD, HERE, SCORES, TUNING, file, refuse_unlocked, rules, table
from benchmarks.arena.results import FEW, of_score, pairs
from benchmarks.arena.runs import Table
from benchmarks.arena.scores import CARRIED, MISS, OWN, names
from benchmarks.arena.tables import SCORE_WORDS, choices, headline, weaknesses
from mpifed import UserError
from mpifed.core.files import replace_file
from mpifed.core.typing import Array
from mpifed.report import profile
from mpifed.report.statistics import LEVEL, holm_correction
from mpifed.report.style import DOUBLE, save

DOCS = HERE.parent.parent / "docs" / "studies"
WITHOUT = "The check was left out: statsmodels is not installed where this page was written."


def write(found: Table, called: str, folder: Path) -> Path:
    """Write the page and what belongs to it: of the plan "committed" into the docs, else into ``folder``."""
    own = study.plan(called)
    if called == "committed" and not mixed.installed():
        raise UserError("the committed page has tests that need statsmodels: pip install statsmodels, then write it")
    refuse_unlocked(names(own, HELD))
    judged = outcome(study.final(found, called, TUNING), study.final(found, called, HELD))
    seconds = sum(row.seconds for row in found.rows.values())
    cost = {"called": called, "runs": f"{len(found.rows):,}", "hours": f"{seconds / 3600:.1f}", "made": ""}
    if called == "committed":
        of = runs.made()
        cost["made"] = f" on {of.machine}, mpifed {of.version} ({of.commit}), {of.date}"
    told = msgspec.to_builtins(own) | cost
    return written(judged, told, DOCS if called == "committed" else folder)


def written(judged: Outcome, told: dict[str, object], folder: Path) -> Path:
    """Write it into a folder; ``told``: what page.md asks for of the plan and its runs."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for score in tables.DRAWN:
        draw(judged, score, folder / "pictures" / f"arena-{score}.png")
    for name, content in {"arena.md": text(judged, told), "arena-explore.html": explore(judged)}.items():
        with replace_file(folder / name, True) as part:
            part.write_text(content, "utf-8")
    return folder / "arena.md"


def draw(judged: Outcome, score: str, path: Path) -> None:
    """The profiles of all methods."""
    groups: dict[str, list[list[float]]] = {}
    for one in of_score(cases(judged.both), score):
        row = [one.costs.get(label, np.inf) for label in judged.labels]
        groups.setdefault(one.workload, []).append(row)
    names = [table(label)["name"] for label in judged.labels]
    costs = profile.Costs(list(judged.labels), names, [np.array(rows) for rows in groups.values()])
    save(profile.plot_profile(costs, SCORE_WORDS[score], width=DOUBLE, band="none"), path, force=True)


def text(judged: Outcome, told: dict[str, object]) -> str:
    """The page."""
    decisions, labels = decide.read(), judged.labels
    both, held = cases(judged.both), cases(judged.held)
    apart = [name for name, one in judged.entries.items() if one.part == HELD]
    weak = weaknesses(held, judged.entries, labels, decisions)
    found = choices(held, judged.entries, labels, decisions)
    filled = {
        "headline": headline(found, decisions, len(apart), weak),
        "decisions": tables.decision_table(decisions),
        "skew": f"{decisions.skew:.3g}",
        "used": len(decisions.used),
        "enough": decide.ENOUGH,
        "features": len(decide.FEATURES),
        "scarce": mixed.SCARCE,
        "common": FEW,
        "miss": MISS,
        "most": rules().curvature.most,
        "rounds": rules().goal.rounds,
        "held_cases": len(held),
        "held": len(apart),
        "workloads": len(judged.entries),
        "methods": len(labels),
        "twins": twins(both, labels),
        "regrets": tables.regrets(held, judged, decisions),
        "standings": tables.standings(both, labels),
        "gains": tables.gains(judged),
        "by_workload": tables.by_workload(both, judged),
        "robust": tables.robust(both, labels, apart),
        "missed": misses(both),
        "about": tables.about(judged),
        "hashes": tables.hashes(),
    }
    ticks = msgspec.to_builtins(rules().system) | {"half": rules().system.tick / 2}
    parts = told | filled | ticks | tested(both, judged, decisions)
    return file("page.md").read_text("utf-8").format(**parts)


def tested(both: Sequence[Case], judged: Outcome, decisions: Decisions) -> dict[str, object]:
    """All tests of the page, corrected together."""
    by_score, labels = {score: of_score(both, score) for score in SCORES}, judged.labels
    tests = {score: pairs(own, labels) for score, own in by_score.items()}
    checks: dict[str, list[Checked]] = {}
    if mixed.installed():
        checks = {score: mixed.checks(own, judged.entries, labels, decisions.skew) for score, own in by_score.items()}
    found = [one.p for lot in tests.values() for one in lot] + [one.p for lot in checks.values() for one in lot]
    corrected = holm_correction(found)
    # Of too few workloads no test of signed ranks is significant, not even as the last that Holm's correction takes.
    left = len(found) - sum(p <= 1 - LEVEL for p in corrected)
    after = iter(corrected)
    tests = {score: [one._replace(p=next(after)) for one in lot] for score, lot in tests.items()}
    checks = {score: [one._replace(p=next(after)) for one in lot] for score, lot in checks.items()}
    differ = sum(one.p <= 1 - LEVEL for lot in tests.values() for one in lot)
    return {
        "few": 1 + math.ceil(math.log2(max(left, 1) / (1 - LEVEL))),
        "pairs": tables.wins(tests, labels) if differ else "",
        "pair_tests": sum(map(len, tests.values())),
        "pair_found": differ,
        "tests": len(found),
        "model_tests": sum(map(len, checks.values())),
        "model": tables.model(checks) if checks else WITHOUT,
    }


def misses(both: Sequence[Case]) -> str:
    """How many costs are those of misses."""
    costs = [cost for one in both for cost in one.costs.values()]
    return f"{sum(map(np.isinf, costs)):,} of {len(costs):,}"


def twins(both: Sequence[Case], labels: Sequence[str]) -> str:
    """Which methods have the same costs wherever both run: with the settings carried over they are one method."""
    found = []
    for first, second in combinations(labels, 2):
        costs = [(one.costs[first], one.costs[second]) for one in both if {first, second} <= one.costs.keys()]
        if costs and all(a == b for a, b in costs):
            found.append(f" {first} and {second} have the same costs everywhere with the settings carried over.")
    return "".join(found)


DIGITS = 4  # significant digits of a cost
AFTERS = {CARRIED: "carried over from the tuning workloads", OWN: "the best try on the workload itself"}


def explore(outcome: Outcome) -> str:
    """The page."""
    gaps = sorted({gap for one in outcome.entries.values() for gap in one.gaps}, reverse=True)
    data = {
        "workloads": [{"name": name, "part": one.part, "about": one.about} for name, one in outcome.entries.items()],
        "methods": list(outcome.labels),
        "scores": [SCORE_WORDS[score] for score in SCORES],
        "after": list(AFTERS.values()),
        "goals": [f"{gap:g} of f0 − f* left" for gap in gaps],
        "costs": [
            [
                [[cells(outcome, (name, label, score, after), gaps) for label in outcome.labels] for after in AFTERS]
                for score in SCORES
            ]
            for name in outcome.entries
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return file("explore.html").read_text("utf-8").replace("/*DATA*/", text)


def cells(outcome: Outcome, of: tuple[str, str, str, int], gaps: list[float]) -> list[list[Any]] | None:
    """Of each gap the median cost, null for a miss, with the numbers of seeds that reach it and in all.

    Null where a method cannot run; an empty list for a gap that is no goal of the workload.
    """
    costs = outcome.both.get(of)
    if costs is None:
        return None
    found = dict(zip(outcome.entries[of[0]].gaps, costs, strict=True))
    return [cell(found[gap]) if gap in found else [] for gap in gaps]


def cell(costs: Array) -> list[Any]:
    """The median cost over seeds, and how many of them reach the goal."""
    middle = float(np.median(costs))
    known = float(f"{middle:.{DIGITS}g}") if np.isfinite(middle) else None
    return [known, int(np.isfinite(costs).sum()), len(costs)]
