"""The headline and the tables of the page, in Markdown."""

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.arena import plan
from benchmarks.arena.decide import Choice, Decisions
from benchmarks.arena.outcome import Case, Outcome, cases, of_accuracy
from benchmarks.arena.plan import HELD, HIGH, LOW, SCORES
from benchmarks.arena.results import (
    ONCE,
    POOLED,
    TOLD,
    Regret,
    beside,
    hindsight,
    middle,
    ranked,
    regret,
    share_missed,
    share_within,
)
from benchmarks.arena.scores import Settings

SCORE_WORDS = {
    "bits": "bits",
    "passes": "passes over the samples",
    "equal": "seconds on equal devices",
    "lognormal": "seconds, log-normal devices",
    "pareto": "seconds, Pareto latencies",
}
COLUMN_WORDS = {"objective": "f", "validation_objective": "validation loss", "validation_accuracy": "accuracy"}


def answer(decisions: Decisions) -> str:
    """The answer in a few words."""
    low, high = (decisions[level].words for level in (LOW, HIGH))
    return f"{low}." if low == high else f"{low}; to high accuracy {high}."


def headline(found: Sequence[Case], decisions: Decisions, held: int) -> str:
    """What the choices cost on held-out workloads, with intervals, and how firm they are."""
    parts = []
    for level, words in ((LOW, "To **low** accuracy"), (HIGH, "To **high** accuracy")):
        choice = decisions[level]
        own = regret(of_accuracy(found, level), choice.pick)
        parts.append(f"{words} {choice.words} {told(own)}. {firm(choice)}")
    intervals = f"In brackets: 95 % of draws of the {held} held-out workloads."
    return "\n\n".join([*parts, intervals])


def told(own: Regret) -> str:
    """A regret in words, with intervals over workloads."""
    total = len(own.ratios) + own.unable
    within, missed = (
        f"{count} of {total} cases ({span(own, measure, '{:.0%}')})"
        for count, measure in ((own.within, share_within), (own.missed, share_missed))
    )
    unable = f", and cannot run in {own.unable}" if own.unable else ""
    costs = f"costs {number(own.middle)} times the least of any method in the median ({span(own, middle, '{:.2f}')})"
    return f"{costs}, is within twice the least in {within} and misses {missed}{unable}"


def span(own: Regret, measure: object, form: str) -> str:
    """An interval in words."""
    low, high = (
        form.format(edge) if math.isfinite(edge) else "a miss"
        for edge in own.interval(measure)  # type: ignore[arg-type]
    )
    return f"{low}–{high}"


def firm(choice: Choice) -> str:
    """Which choice is made where a tuning workload is left out."""
    total = sum(choice.fewer.values())
    others = [f"{words} in {count}" for words, count in choice.fewer.items() if words != choice.words]
    same = choice.fewer.get(choice.words, 0)
    rest = f", {'; '.join(others)}" if others else ""
    return f"Left out in turn, {same} of {total} tuning workloads leave this choice as it is{rest}."


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def regrets(found: Sequence[Case], outcome: Outcome, decisions: Decisions, level: str) -> str:
    """What the choice and every method cost in the held-out cases of an accuracy, and what needs no rounds."""
    own, choice = of_accuracy(found, level), decisions[level]
    rows = [regret_row(f"**{choice.words}**", regret(own, choice.pick))]
    best = hindsight(own, outcome.labels)
    rows.append(regret_row(f"in hindsight: {best.words}", regret(own, best.pick)))
    rows += [regret_row(label, one) for label, one in ranked(own, outcome.labels)]
    rows += [beside_row(own, outcome, name) for name in (ONCE, POOLED)]
    return regret_grid(rows)


def regret_grid(rows: Sequence[Sequence[str]]) -> str:
    """Rows of regrets under their head."""
    return grid(["", "cases where it can run", "median ratio", "at most twice the least", "goal missed"], rows)


def regret_row(choice: str, found: Regret) -> list[str]:
    """A row of the table of regrets."""
    total = max(1, len(found.ratios))
    shares = [f"{count} ({count / total:.0%})" for count in (found.within, found.missed)]
    return [choice, str(len(found.ratios)), number(found.middle), *shares]


def beside_row(found: Sequence[Case], outcome: Outcome, name: str) -> list[str]:
    """Of a reference, the ratio to the least of all methods, over the scores that it has."""
    lots = [beside(found, outcome.entries, score, name) for score in TOLD]
    words = [
        f"{SCORE_WORDS[score]}: {number(one.ratio)}, less than every method in {one.less} of {one.cases}"
        for score, one in zip(TOLD, lots, strict=True)
        if one is not None
    ]
    return [f"*{name}*", "", "; ".join(words), "", ""]


def number(value: float) -> str:
    """A ratio in words."""
    return f"{value:.2f}" if value < math.inf else "a miss"


def by_score(found: Sequence[Case], decisions: Decisions) -> str:
    """The median ratio of the choices under each score, and within twice, where all reply and where some are absent."""
    rows = []
    for level in (LOW, HIGH):
        for absent in (False, True):
            some = [one for one in of_accuracy(found, level) if is_absent(one) == absent]
            cells = []
            for score in SCORES:
                own = regret([one for one in some if one.score == score], decisions[level].pick)
                cells.append(f"{number(own.middle)}, {own.within} of {len(own.ratios) + own.unable}")
            rows.append([level, "some absent" if absent else "all reply", *cells])
    return grid(["accuracy", "clients", *SCORES], rows)


def is_absent(one: Case) -> bool:
    """Whether clients do not reply on the workload of a case."""
    return plan.workloads()[one.workload].group == "absent"


def by_workload(found: Sequence[Case], outcome: Outcome) -> str:
    """The method with the least median cost at the hardest goal that one reaches, of every workload and score."""
    rows = []
    for name, entry in outcome.entries.items():
        own = [one for one in found if one.workload == name]
        cells = []
        for score in SCORES:
            lots = [one for one in own if one.score == score]
            last = max(lots, key=lambda one: one.goal, default=None)
            best = "–" if last is None else min(last.costs, key=last.costs.__getitem__)
            cells.append(best if last is None else f"{best}, {goal_words(entry.known, last.goal)}")
        rows.append([name, entry.workload.part, *cells])
    return grid(["", "part", *SCORES], rows)


def goal_words(known: plan.Facts, goal: int) -> str:
    """A goal in words."""
    column = known.columns[goal]
    return power(known.gaps[goal]) if column == "objective" else f"{COLUMN_WORDS[column]} {known.gaps[goal]:g}"


def power(gap: float) -> str:
    """1e-4 in place of 1e-04."""
    return f"{gap:.0e}".replace("e-0", "e-")


def about(outcome: Outcome) -> str:
    """The workloads."""
    rows = []
    for name, (one, known) in outcome.entries.items():
        samples = f"{known.m * known.samples:.0f}"
        seen = [str(known.m), str(known.n), samples, f"{known.share:.0%}", str(one.batch or "all")]
        left = "–" if one.group == "network" else f"{known.gradient:.0e}"
        goals = ", ".join(goal_words(known, k) for k in range(len(known.goals)))
        rows.append([name, one.part, one.group, *seen, left, goals])
    head = ["workload", "part", "group", "clients", "n", "samples", "a round", "batch", "gradient left at f*", "goals"]
    return grid(head, rows)


def ends(carried: Settings, tries: int) -> str:
    """How many numbers of the settings carried over are the least or the largest that were tried."""
    found = [
        of[number] in (of.min(), of.max())
        for chosen in carried.values()
        for label, number in chosen.items()
        if plan.ranges(label)
        for of in np.array(plan.shares(label, tries)).T
    ]
    return f"{sum(found)} of {len(found)}"


def hashes() -> str:
    """The hashes of what was fixed."""
    return grid(["file", "hash"], [[f"`{name}`", f"`{value}`"] for name, value in plan.hashes().items()])


def own_row(outcome: Outcome, decisions: Decisions, label: str) -> str:
    """The regret of a user's own method on the held-out workloads beside the page's choice and the best methods."""
    found = cases(outcome.held)
    held = sum(one.workload.part == HELD for one in outcome.entries.values())
    parts = []
    for level in (LOW, HIGH):
        own = of_accuracy(found, level)
        others = ranked(own, [one for one in outcome.labels if one != label])
        rows = [regret_row(label, regret(own, lambda case: label))]
        rows.append(regret_row(f"the page: {decisions[level].words}", regret(own, decisions[level].pick)))
        rows += [regret_row(*one) for one in others[:3]]
        parts.append(f"{level} accuracy, {held} held-out workloads, {len(own)} cases:\n\n{regret_grid(rows)}")
    return "\n\n".join(parts)
