"""The tables of the page, in Markdown."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.arena import decide, plan
from benchmarks.arena.decide import Decisions, always
from benchmarks.arena.mixed import Checked
from benchmarks.arena.outcome import COUNTED, Case, Outcome, cases
from benchmarks.arena.plan import HELD, SCORES
from benchmarks.arena.results import (
    Gain,
    Pair,
    Regret,
    difference,
    gain,
    hindsight,
    of_score,
    ranks,
    regret,
    standing,
    winner,
)
from mpifed.report.statistics import LEVEL, BootstrapBand

SCORE_WORDS = {
    "bits": "bits",
    "passes": "passes over the samples",
    "equal": "seconds on equal devices",
    "lognormal": "seconds, log-normal devices",
    "pareto": "seconds, Pareto latencies",
}
FEATURE_WORDS = {
    "bits": "bits",
    "seconds": "passes or seconds",
    "affordable": "affordable",
    "too dear": "not affordable",
    "plain": "no network",
    "network": "network",
    "strong": "strong",
    "weak": "weak",
    "many": "half of them or more",
    "few": "fewer than half",
}
GROUP_WORDS = {
    "plain": "other workloads",
    "absent": "workloads with absent clients",
    "network": "networks",
    "sites": "tables of real sites",
}


class Choices(NamedTuple):
    """What rules of choice cost on held-out workloads: the table, its one method for all, the best in hindsight.

    ``apart``: by how much the table's share of cases within twice the least is above that of its one method.
    """

    table: Regret
    single: Regret
    label: str
    hindsight: Regret
    apart: BootstrapBand


def choices(cases: Sequence[Case], entries: decide.Entries, labels: Sequence[str], decisions: Decisions) -> Choices:
    """The rules of choice in these cases."""
    label = hindsight(cases, labels)
    both = decisions.pick(entries), decisions.single.pick(entries)
    found = [regret(cases, pick) for pick in (*both, always(label))]
    return Choices(found[0], found[1], label, found[2], difference(cases, *both))


def headline(found: Choices, decisions: Decisions, workloads: int, weak: str) -> str:
    """The answer on top of the page, whatever it is; ``weak`` says what the one method is not for."""
    of = f"On {workloads} held-out workloads"
    low, high = (f"{100 * float(edge[0]):+.0f}" for edge in (found.apart.low, found.apart.high))
    interval = f"the difference of the shares within twice the least is {low} to {high} points (95 %)"
    if decisions.rows and found.apart.low[0] > 0:
        first = f"Take the method that the table below names. {of} it {told(found.table)}."
        second = f"One for all, {decisions.words}, {told(found.single)}; {interval}."
    else:
        enough = 2 * found.single.within >= len(found.single.ratios) + found.single.unable
        answer = "One method is enough" if enough else "No method is enough, and no table is better than one"
        first = f"{answer}: {decisions.words}. {of} this {told(found.single)}."
        second = "No feature of the tuning workloads names another."
        if decisions.rows:
            verdict = "is worse" if found.apart.high[0] < 0 else "cannot be told from it"
            second = f"A table by features {verdict}: it {told(found.table)}; {interval}."
        second += f" {weak}"
    last = f"In hindsight {found.label} everywhere {told(found.hindsight)}."
    return " ".join([first, second, *([last] if found.label != decisions.best else [])])


def told(found: Regret) -> str:
    """A regret in words."""
    middle = f"costs {found.middle:.2f} times the least in the median" if found.middle < math.inf else "misses mostly"
    unable = f", and cannot run in {found.unable}" if found.unable else ""
    cases = f"{found.within} of {len(found.ratios) + found.unable} cases"
    return f"{middle}, is within twice the least in {cases}, misses {found.missed or 'none'}{unable}"


def weaknesses(cases: Sequence[Case], entries: decide.Entries, labels: Sequence[str], decisions: Decisions) -> str:
    """Where the one method costs more than twice the least in the median of held-out cases."""
    places: dict[tuple[str, str], list[Case]] = {}
    for one in cases:
        places.setdefault((COUNTED[one.score], entries[one.workload].group), []).append(one)
    parts = []
    for (kind, group), found in places.items():
        own = regret(found, decisions.single.pick(entries))
        if own.middle > 2:
            other = hindsight(found, labels)
            share = f"{other} {regret(found, always(other)).within} of {len(found)}"
            parts.append(f"{FEATURE_WORDS[kind]} on {GROUP_WORDS[group]} (within twice {own.within}, {share})")
    return f"It is not for {'; '.join(parts)}." if parts else "Its median is within twice the least for all of them."


DRAWN = ("bits", "equal")  # scores with a picture
LONG = 4  # so many names that tie are counted
FEATURE_HEADS = ["what is counted", "n×n matrices", "model", "skew", "clients a round"]


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def decision_table(decisions: Decisions) -> str:
    """The table of decisions in words, with the features that some row has."""
    if not decisions.rows:
        return f"For all: **{decisions.words}**."
    columns = [k for k in range(len(FEATURE_HEADS)) if any(cell[k] for cell in decisions.rows)]
    rows = [
        [*(FEATURE_WORDS[cell[k]] if cell[k] else "" for k in columns), label] for cell, label in decisions.rows.items()
    ]
    note = "An empty cell: whatever it is. Where a method cannot run, that of the row above it that fits."
    body = grid([*(FEATURE_HEADS[k] for k in columns), "method"], rows)
    return f"{body}\n\nOtherwise: **{decisions.words}**. {note}"


def regrets(found: Sequence[Case], outcome: Outcome, decisions: Decisions) -> str:
    """What rules of choice cost in held-out cases: the table, and all methods by how often they are within twice."""
    fixed = {label: regret(found, always(label)) for label in outcome.labels}
    best = hindsight(found, outcome.labels)
    rows = [regret_row(*one) for one in chosen(found, outcome, decisions)]
    notes = {best: " (best in hindsight)"}
    order = sorted(fixed, key=lambda one: (-fixed[one].within, fixed[one].missed))
    rows += [regret_row(f"always {label}{notes.get(label, '')}", fixed[label]) for label in order]
    return regret_grid(rows)


def chosen(found: Sequence[Case], outcome: Outcome, decisions: Decisions) -> list[tuple[str, Regret]]:
    """The regrets of the table, where there is one, and of the one method for all, both from the tuning workloads."""
    rules = [("the table", decisions)] if decisions.rows else []
    rules.append((f"one for all: {decisions.words}", decisions.single))
    return [(name, regret(found, rule.pick(outcome.entries))) for name, rule in rules]


def regret_grid(rows: Sequence[Sequence[str]]) -> str:
    """Rows of regrets under their head."""
    head = ["choice", "cases where it can run", "median ratio", "at most twice the least", "goal missed", "cannot run"]
    return grid(head, rows)


def regret_row(choice: str, found: Regret) -> list[str]:
    """A row of the table of regrets."""
    total = max(1, len(found.ratios))
    shares = [f"{count} ({count / total:.0%})" for count in (found.within, found.missed)]
    return [choice, str(len(found.ratios)), number(found.middle), *shares, str(found.unable)]


def number(value: float) -> str:
    """A ratio in words."""
    return f"{value:.2f}" if value < math.inf else "a miss"


def standings(found: Sequence[Case], labels: Sequence[str]) -> str:
    """How methods stand under every score."""
    columns = [standing(of_score(found, score), labels) for score in SCORES]
    rows = []
    for k, label in enumerate(labels):
        cells = [f"{c.within.middle[k]:.2f} ({c.within.low[k]:.2f}–{c.within.high[k]:.2f})" for c in columns]
        cells = [f"**{cell}**" if c.best[k] else cell for cell, c in zip(cells, columns, strict=True)]
        where = max(c.where[k] for c in columns)
        rows.append([label, str(where), *(cells if where else ["–"] * len(SCORES))])
    pictures = "\n".join(f"![Profiles, {SCORE_WORDS[score]}](pictures/arena-{score}.png)" for score in DRAWN)
    return f"{grid(['', 'workloads', *SCORES], rows)}\n\n{pictures}"


def wins(tests: dict[str, list[Pair]], labels: Sequence[str]) -> str:
    """Of each method and score, from how many others it differs, to the better and to the worse."""
    rows = []
    for label in labels:
        cells = []
        for found in tests.values():
            differ = [pair for pair in found if pair.p <= 1 - LEVEL and label in pair[:2]]
            before = sum(pair.first == label for pair in differ)
            cells.append(f"{before} : {len(differ) - before}" if differ else "")
        rows.append([label, *cells])
    return grid(["", *tests], [row for row in rows if any(row[1:])])


def gains(outcome: Outcome) -> str:
    """What tuning on the workload itself gives on the held-out workloads."""
    rows = []
    for label in outcome.labels:
        found = gain(outcome.held, label)
        rows.append([label, *(["0", "", "", ""] if found is None else gain_cells(found))])
    return grid(["", "workloads", "goals reached, carried", "tuned there", "cost, tuned there over carried"], rows)


def gain_cells(found: Gain) -> list[str]:
    """The cells of a method."""
    middle, low, high = map(float, found.ratio)
    return [str(found.workloads), f"{found.carried:.0%}", f"{found.own:.0%}", f"{middle:.2f} ({low:.2f}–{high:.2f})"]


def by_workload(found: Sequence[Case], outcome: Outcome) -> str:
    """The winner of every workload and score."""
    rows = []
    for name, entry in outcome.entries.items():
        won = [winner(outcome.both, found, name, score) for score in SCORES]
        cells = ["–" if one is None else f"{tie(one.best)}, {power(entry.gaps[one.goal])}" for one in won]
        rows.append([name, *cells])
    return grid(["", *SCORES], rows)


def power(gap: float) -> str:
    """1e-4 in place of 1e-04."""
    return f"{gap:.0e}".replace("e-0", "e-")


def tie(best: Sequence[str]) -> str:
    """The names of those that tie, or their number."""
    return " = ".join(best) if len(best) < LONG else f"{len(best)} tie"


def robust(found: Sequence[Case], labels: Sequence[str], held: Sequence[str]) -> str:
    """Ranks by score, their ranges without a method and without a workload, and on the held-out workloads alone."""
    columns = []
    for score in SCORES:
        own = of_score(found, score)
        alone = ranks([one for one in own if one.workload in held], labels)
        cells = [f"{one.rank} ({span(one.methods)}; {span(one.workloads)})" for one in ranks(own, labels)]
        columns.append([f"{cell}, {one.rank}" for cell, one in zip(cells, alone, strict=True)])
    return grid(["", *SCORES], [[label, *cells] for label, *cells in zip(labels, *columns, strict=True)])


def span(of: tuple[int, int]) -> str:
    """A range of ranks."""
    return f"{of[0]}–{of[1]}" if of[0] < of[1] else str(of[0])


def model(checks: dict[str, list[Checked]]) -> str:
    """The tests of method × feature in a mixed model, and which method the model has first."""
    rows = []
    for score, found in checks.items():
        for one in found:
            first = "; ".join(f"{FEATURE_WORDS[word]}: {label}" for word, label in one.first.items())
            tests = [f"{one.statistic:.1f} ({one.freedom[0]}, {one.freedom[1]})", f"{one.p:.2g}"]
            rows.append([score, FEATURE_HEADS[decide.FEATURES.index(one.feature)], *tests, first])
    return grid(["score", "feature", "F (degrees of freedom)", "p", "first by the model"], rows)


def about(outcome: Outcome) -> str:
    """The workloads."""
    rows = []
    for name, one in outcome.entries.items():
        seen = [f"{one.m}", f"{one.n}", f"{one.skew:.2g}", f"{one.share:.0%}", str(one.batch or "all")]
        rows.append([name, one.part, one.group, *seen, ", ".join(map(power, one.gaps))])
    return grid(["workload", "part", "group", "clients", "n", "skew", "a round", "batch", "goals"], rows)


def hashes() -> str:
    """The hashes of what was fixed."""
    return grid(["file", "hash"], [[f"`{name}`", f"`{value}`"] for name, value in plan.hashes().items()])


def own_row(outcome: Outcome, label: str) -> str:
    """The regret of a user's own method on the held-out workloads beside the table's and the best ones'."""
    found, decisions = cases(outcome.held), decide.read()
    others = [one for one in outcome.labels if one != label]
    best = hindsight(found, others)
    rows = [(f"always {label}", regret(found, always(label))), *chosen(found, outcome, decisions)]
    rows.append((f"always {best} (best of the others in hindsight)", regret(found, always(best))))
    held = sum(one.part == HELD for one in outcome.entries.values())
    words = f"{held} held-out workloads, {len(found)} cases, {label} among the methods of which the least is taken:"
    return f"{words}\n\n{regret_grid([regret_row(*one) for one in rows])}"
