"""The page to explore: all medians in one HTML file, with switches for score, settings, goal, workloads and methods."""

import json
from typing import Any

import numpy as np

from benchmarks.arena.outcome import Outcome
from benchmarks.arena.plan import SCORES, file
from benchmarks.arena.scores import CARRIED, OWN
from benchmarks.arena.sentences import SCORE_WORDS
from mpifed.core.typing import Array

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
