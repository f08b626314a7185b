"""The tables of the page, in Markdown."""

from collections.abc import Sequence

from benchmarks.arena import decide, lock, study
from benchmarks.arena.decide import Decisions, Regret, regret
from benchmarks.arena.outcome import Outcome
from benchmarks.arena.plan import SCORES, facts, labels, workloads
from benchmarks.arena.results import (
    groups,
    pairs,
    ranking,
    reached,
    standing,
    winner,
    without_methods,
    without_workloads,
)
from benchmarks.arena.scores import SELF, names
from benchmarks.arena.sentences import FEATURE_WORDS, SCORE_WORDS
from mpifed.report.statistics import LEVEL

DRAWN = ("bits", "equal")  # scores with a picture
LONG = 4  # so many names that tie are counted


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def regret_of(outcome: Outcome, pick: decide.Pick) -> Regret:
    """The regret of a choice on the held-out workloads."""
    return regret(outcome.held, outcome.plan, names(outcome.plan, study.HELD), pick)


def decision_table(decisions: Decisions) -> str:
    """The table of decisions in words."""
    rows = [
        [*(FEATURE_WORDS[word] for word in cell), *[""] * (4 - len(cell)), label]
        for cell, label in decisions.rows.items()
    ]
    head = ["what is counted", "n×n matrices", "skew", "clients a round", "method"]
    best = f"Otherwise: **{decisions.best}**. An empty cell: whatever it is."
    note = f"{best} Strong skew: above {decisions.skew:.3g} (see below)."
    return f"## The table of decisions\n\n{grid(head, rows)}\n\n{note}"


def regrets(outcome: Outcome, decisions: Decisions) -> str:
    """What rules of choice cost on the held-out workloads."""
    rows = [told("the table", regret_of(outcome, decisions.method))]
    for label in labels(outcome.plan):
        best = " (best on the tuning workloads)" if label == decisions.best else ""
        rows.append(told(f"always {label}{best}", regret_of(outcome, always(label))))
    head = ["choice", "cases", "median ratio to the best", "at most twice the best", "goal missed"]
    return f"## Regret on the held-out workloads\n\n{grid(head, rows)}"


def always(label: str) -> decide.Pick:
    """The choice of one method, whatever the features."""
    return lambda cell: label


def told(choice: str, found: Regret) -> list[str]:
    """A row of the table of regrets."""
    total = len(found.ratios)
    share = [f"{count} ({count / total:.0%})" for count in (found.within, found.missed)]
    return [choice, str(total), number(found.middle), *share]


def number(value: float) -> str:
    """A ratio in words."""
    return f"{value:.3g}" if value < float("inf") else "a miss"


def standings(outcome: Outcome) -> str:
    """How methods stand under every score, after all tries."""
    own = labels(outcome.plan)
    columns = [standing(outcome.both, outcome.plan, outcome.names, score, outcome.plan.tries) for score in SCORES]
    rows = []
    for k, label in enumerate(own):
        cells = [f"{c.within.middle[k]:.2f} ({c.within.low[k]:.2f}–{c.within.high[k]:.2f})" for c in columns]
        rows.append(
            [label, *(f"**{cell}**" if label in c.best else cell for cell, c in zip(cells, columns, strict=True))]
        )
    words = (
        "The share of instances (workload × goal × seed) on which a method costs at most twice the least, with bands "
        f"of {LEVEL:.0%}: whole workloads are drawn, then instances of each. Bold: the best, and those whose bands "
        "reach its band; several tie."
    )
    pictures = "\n".join(f"![Profiles, {SCORE_WORDS[score]}](pictures/arena-{score}.png)" for score in DRAWN)
    return f"## How methods stand\n\n{words}\n\n{grid(['', *SCORES], rows)}\n\n{pictures}"


def wins(outcome: Outcome) -> str:
    """Pairs of methods that differ, by score."""
    own, rows = labels(outcome.plan), []
    for score in SCORES:
        found = pairs(outcome.both, outcome.plan, outcome.names, score)
        for pair in found:
            if pair.p <= 1 - LEVEL:
                first, last = (pair.a, pair.b) if pair.wins > pair.losses else (pair.b, pair.a)
                counts = sorted([pair.wins, pair.losses])
                rows.append([score, f"{own[first]} before {own[last]}", f"{counts[1]} : {counts[0]}", f"{pair.p:.2g}"])
    words = (
        "Sign tests of all pairs of methods at the hardest goal, one number for each workload (the median over seeds), "
        f"corrected by Holm for all pairs of a score. Significant at {1 - LEVEL:.0%}:"
    )
    body = (
        grid(["score", "pair", "wins", "p"], rows)
        if rows
        else "No pair of methods differs significantly under any score."
    )
    return f"## Pairs of methods\n\n{words}\n\n{body}"


def tries_table(outcome: Outcome) -> str:
    """What tuning gives: goals reached after so many tries, and with one setting for everything."""
    own, plan = labels(outcome.plan), outcome.plan
    head = ["", *(f"{after} tries" if after > 1 else "1 try" for after in plan.after), "one setting"]
    columns = [reached(outcome.both, plan, outcome.names, after) for after in (*plan.after, SELF)]
    rows = [[label, *(f"{column[label]:.0%}" for column in columns)] for label in own]
    words = (
        "The share of goals that a method reaches within the cap, over workloads, goals, seeds and scores: after "
        "tuning for each workload and score, and with one setting for everything, chosen on the tuning workloads."
    )
    return f"## What tuning gives\n\n{words}\n\n{grid(head, rows)}"


def by_workload(outcome: Outcome) -> str:
    """The winner of every workload and score."""
    rows = []
    for name in outcome.names:
        cells = []
        for score in SCORES:
            won = winner(outcome.both, outcome.plan, name, score)
            cells.append("–" if won is None else tie(won.best))
        rows.append([name, *cells])
    words = (
        "At the hardest goal that some method reaches. A name alone: its band of the median over seeds is apart from "
        "all others."
    )
    return f"## Workload by workload\n\n{words}\n\n{grid(['', *SCORES], rows)}"


def tie(best: Sequence[str]) -> str:
    """The names of those that tie, or their number."""
    return " = ".join(best) if len(best) < LONG else f"{len(best)} tie"


def robust(outcome: Outcome) -> str:
    """Whether the first place stays where it is without one workload or one method."""
    rows = []
    for score in SCORES:
        all_in = groups(outcome.both, outcome.plan, outcome.names, score, outcome.plan.tries)
        order = ranking(all_in, labels(outcome.plan))
        others = without_workloads(outcome.both, outcome.plan, outcome.names, score)
        less = without_methods(outcome.both, outcome.plan, outcome.names, score)
        changed = sum(first != order[0] for first in others.values())
        moved = sum(found != [one for one in order if one != left] for left, found in less.items())
        rows.append([score, ", ".join(order[:3]), f"{changed} of {len(others)}", f"{moved} of {len(less)}"])
    head = ["score", "first three", "another first without one workload", "another order without one method"]
    return f"## Without one workload, without one method\n\n{grid(head, rows)}"


def about(outcome: Outcome) -> str:
    """The workloads."""
    rows = []
    for name in outcome.names:
        one, known = workloads()[name], facts()[name]
        features = [f"{known.m}", f"{known.n}", f"{known.skew:.2g}", f"{known.share:.0%}", str(one.batch or "all")]
        rows.append([name, one.part, *features])
    return grid(["workload", "part", "clients", "n", "skew", "a round", "batch"], rows)


def hashes() -> str:
    """The hashes of what was fixed."""
    rows = [[f"`{name}`", f"`{value}`"] for name, value in lock.hashes().items()]
    words = "SHA-256 of what was fixed before a held-out workload was opened:"
    return f"## Hashes\n\n{words}\n\n{grid(['file', 'hash'], rows)}"
