"""The page of results, docs/studies/arena.md, with its pictures: page.md filled in from rows."""

from pathlib import Path

from benchmarks.arena import decide, study
from benchmarks.arena.decide import Decisions
from benchmarks.arena.explore import explore
from benchmarks.arena.lock import refuse_unlocked
from benchmarks.arena.outcome import Outcome
from benchmarks.arena.plan import HERE, file, labels, rules, table
from benchmarks.arena.results import groups
from benchmarks.arena.runs import Table
from benchmarks.arena.scores import names
from benchmarks.arena.sentences import SCORE_WORDS, added, headline, left_out
from benchmarks.arena.tables import (
    DRAWN,
    about,
    always,
    by_workload,
    decision_table,
    hashes,
    regret_of,
    regrets,
    robust,
    standings,
    tries_table,
    wins,
)
from mpifed.core.files import replacing
from mpifed.report import profile
from mpifed.report.style import DOUBLE, save

DOCS = HERE.parent.parent / "docs" / "studies"


def write(found: Table, called: str, folder: Path) -> Path:
    """Write the page and what belongs to it: of the plan "committed" into the docs, else into ``folder``."""
    own = study.plan(called)
    refuse_unlocked(names(own, study.HELD))
    outcome = Outcome(called, own, study.final(found, own, study.TUNING), study.final(found, own, study.HELD))
    target = DOCS if called == "committed" else folder
    (target / "pictures").mkdir(parents=True, exist_ok=True)
    for score in DRAWN:
        draw(outcome, score, target / "pictures" / f"arena-{score}.png")
    path = target / "arena.md"
    for name, content in {"arena.md": text(outcome, found), "arena-explore.html": explore(outcome)}.items():
        with replacing(target / name, True) as part:
            part.write_text(content, "utf-8")
    return path


def draw(outcome: Outcome, score: str, path: Path) -> None:
    """The profiles of all methods after all tries."""
    own = labels(outcome.plan)
    found = groups(outcome.both, outcome.plan, outcome.names, score, outcome.plan.tries)
    costs = profile.Costs(own, [table(label)["name"] for label in own], found)
    save(profile.draw(costs, SCORE_WORDS[score], width=DOUBLE), path, force=True)


def text(outcome: Outcome, found: Table) -> str:
    """The page."""
    decisions = decide.read()
    held = names(outcome.plan, study.HELD)
    choices = decide.choices(outcome.held, outcome.plan, held, decisions)
    results = [
        decision_table(decisions),
        regrets(outcome, decisions),
        standings(outcome),
        wins(outcome),
        tries_table(outcome),
        by_workload(outcome),
        robust(outcome),
    ]
    told = numbers(outcome, found) | {
        "headline": headline(choices, decisions, len(held), outcome.plan.tries),
        "carried": history(outcome, decisions, choices.label),
        "results": "\n\n".join(results),
        "hashes": hashes(),
    }
    return file("page.md").read_text("utf-8").format(**told)


def history(outcome: Outcome, decisions: Decisions, hindsight: str) -> str:
    """How a plan came to be what it is: of "committed" what was dropped, and of all the seeds that were added."""
    own = labels(outcome.plan)
    parts = []
    if outcome.called == "committed":
        parts.append(left_out([label for label in labels() if label not in own], len(own)))
    first, seeds = study.fixed(outcome.called).seeds, outcome.plan.seeds
    if seeds > first:
        lots = [slice(None, first), slice(first, None)]
        before, after = [with_seeds(outcome, lot, decisions, hindsight) for lot in lots]
        parts.append(added(range(first, seeds), before, after))
    return "".join(parts)


def with_seeds(outcome: Outcome, lot: slice, decisions: Decisions, hindsight: str) -> str:
    """Held-out cases at most twice the best, of the table and of two methods, with some of the final seeds."""
    part = outcome._replace(held={cell: costs[:, lot] for cell, costs in outcome.held.items()})
    table = regret_of(part, decisions.method)
    parts = [f"{table.within} of {len(table.ratios)} for the table"]
    parts += [
        f"{regret_of(part, always(label)).within} for {label}" for label in dict.fromkeys([decisions.best, hindsight])
    ]
    return ", ".join(parts)


def numbers(outcome: Outcome, found: Table) -> dict[str, object]:
    """How much was run, for the last paragraphs."""
    plan, own = outcome.plan, set(labels(outcome.plan))
    rows = [row for task, row in found.rows.items() if task.workload in outcome.names and task.method in own]
    return {
        "called": outcome.called,
        "tries": plan.tries,
        "seeds": plan.seeds,
        "methods": len(own),
        "runs": f"{len(rows):,}",
        "minutes": f"{sum(row.seconds for row in rows) / 60:.0f}",
        "workloads": len(outcome.names),
        "held": len(names(plan, study.HELD)),
        "rounds": 2 * rules().goal.rounds,
        "table": about(outcome),
    }
