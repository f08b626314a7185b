"""The steps of the study, each of which does what is missing: tries and final runs on a part."""

import tomllib
from collections.abc import Iterable, Sequence

from benchmarks.arena import goals, scores
from benchmarks.arena.plan import HELD, TUNING, Plan, file, rules, workloads
from benchmarks.arena.runs import Table, do, tries
from benchmarks.arena.scores import Final, Settings, compared, finals, names, tuning_seeds
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.extend import Data

HEAD = "# Written by python -m benchmarks.arena tune: the tries that are carried over, by kind of cost and method.\n"


def plan(name: str) -> Plan:
    """A plan of rules.toml. UserError for an unknown one."""
    if name not in rules().plan:
        raise UserError(f"--plan {name} is wrong: there are {', '.join(rules().plan)}")
    return rules().plan[name]


def refuse_missing(wanted: Iterable[str]) -> None:
    """UserError where the data of one of these workloads, or the package that has them, are not there."""
    for name in wanted:
        Data.build(workloads()[name].study["data"], "data").check()


def set_goals(processes: int) -> None:
    """Write goals.toml."""
    refuse_missing(workloads())
    file("goals.toml").write_text(goals.text(goals.every(workloads(), processes)), "utf-8")


def tuned(table: Table, own: Plan, methods: Sequence[str], processes: int) -> Settings:
    """All tries on the tuning workloads with the first tuning seed, the best with all; the settings carried over."""
    wanted, seeds = names(own, TUNING), tuning_seeds(own.tuning_seeds)
    refuse_missing([*wanted, *names(own, HELD)])
    do([task for label in methods for task in tries(wanted, [label], range(own.tries), seeds[:1])], table, processes)
    best = scores.kept(table.rows, own, wanted)
    do([task for label in methods for task in tries(wanted, [label], best[label], seeds)], table, processes)
    return scores.settings(table.rows, own, wanted)


def tune(table: Table, called: str, processes: int) -> None:
    """Tries on the tuning workloads, which judge settings there too, and settings.toml."""
    file("settings.toml").write_text(spelt(tuned(table, plan(called), compared(), processes), called), "utf-8")


def held_out(table: Table, called: str, processes: int, carried: Settings | None = None) -> None:
    """Runs on the held-out workloads, which the lock must allow."""
    own = plan(called)
    refuse_missing(names(own, HELD))
    do(finals(own, carried or settings(called), names(own, HELD)), table, processes)


def entered(table: Table, called: str, processes: int) -> Settings:
    """All runs of a user's own class beside the rows that ``table`` has; settings with its own."""
    label = compared()[-1]
    found = tuned(table, plan(called), [label], processes)
    carried = {kind: of | {label: found[kind][label]} for kind, of in settings(called).items()}
    held_out(table, called, processes, carried)
    return carried


def spelt(found: Settings, called: str) -> str:
    """settings.toml."""
    lines = [f"plan = {toml_value(called)}"]
    for kind, of in found.items():
        lines += ["", f"[{kind}]", *(f"{toml_value(label)} = {number}" for label, number in of.items())]
    return "\n".join([HEAD, *lines, ""])


def settings(called: str) -> Settings:
    """settings.toml. UserError where it is not there, or of another plan."""
    path = file("settings.toml")
    found = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    if found.pop("plan", None) != called:
        raise UserError(f"settings.toml is not of the plan {called}: python -m benchmarks.arena tune writes it")
    return found


def final(table: Table, called: str, part: str, carried: Settings | None = None) -> Final:
    """What came out on a part. UserError where runs are missing."""
    own = plan(called)
    try:
        return scores.scored(table.rows, own, carried or settings(called), names(own, part))
    except KeyError as missing:
        raise UserError(f"runs are missing, such as {missing.args[0]}: run them first") from None
