"""The page to explore: all medians in one HTML file, with switches for score, settings, goal, workloads and methods."""

import json
from typing import Any

import numpy as np

from benchmarks.arena.outcome import Outcome
from benchmarks.arena.plan import SCORES, file, labels, rules, workloads
from benchmarks.arena.scores import SELF
from benchmarks.arena.sentences import SCORE_WORDS
from mpifed.core.typing import Array

DIGITS = 4  # significant digits of a cost


def explore(outcome: Outcome) -> str:
    """The page."""
    plan = outcome.plan
    afters = [*plan.after, SELF]
    final = outcome.both
    data = {
        "workloads": [
            {key: getattr(workloads()[name], key) for key in ("name", "part", "about")} for name in outcome.names
        ],
        "methods": labels(plan),
        "scores": [SCORE_WORDS[score] for score in SCORES],
        "after": [f"best of {after}" if after else "one setting for everything" for after in afters],
        "goals": [f"{gap:.0%} of the way left" for gap in rules().goal.gaps],
        "seeds": plan.seeds,
        "costs": [
            [[[cells(final[name, own, score, after]) for own in labels(plan)] for after in afters] for score in SCORES]
            for name in outcome.names
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return file("explore.html").read_text("utf-8").replace("/*DATA*/", text)


def cells(costs: Array) -> list[list[Any]]:
    """The median cost of each goal, null for a miss, and the number of seeds that reach it."""
    middles = np.sort(costs, axis=1)[:, costs.shape[1] // 2].tolist()
    counts = np.isfinite(costs).sum(axis=1).tolist()
    return [[number(middle), count] for middle, count in zip(middles, counts, strict=True)]


def number(cost: float) -> float | None:
    """A cost with few digits."""
    return float(f"{cost:.{DIGITS}g}") if np.isfinite(cost) else None
