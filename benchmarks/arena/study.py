"""The steps of the study, each of which does what is missing: tries and final runs on a part, decisions, the page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.arena import decide, goals, lock
from benchmarks.arena.plan import Plan, file, labels, later, rules, workloads
from benchmarks.arena.runs import Table, do, tries
from benchmarks.arena.scores import Final, chosen, common, finals, names, scored
from mpifed import Data, UserError

TUNING, HELD = "tuning", "held-out"


def fixed(name: str) -> Plan:
    """A plan as rules.toml has it. UserError for an unknown one."""
    if name not in rules().plan:
        raise UserError(f"--plan {name} is wrong: there are {', '.join(rules().plan)}")
    return rules().plan[name]


def plan(name: str) -> Plan:
    """A plan with the final seeds of later.toml. UserError where that takes some away."""
    own = fixed(name)
    seeds = later().get(name, own.seeds)
    if seeds < own.seeds:
        raise UserError(
            f"later.toml: {name} = {seeds} is wrong: seeds can only be added to the {own.seeds} of rules.toml"
        )
    return msgspec.structs.replace(own, seeds=seeds)


def refuse_missing(wanted: Iterable[str]) -> None:
    """UserError where the data of one of these workloads, or the package that has them, are not there."""
    for name in wanted:
        Data.build(workloads()[name].study["data"], "data").check()


def set_goals(processes: int) -> None:
    """Write goals.toml, with the references' runs alone."""
    refuse_missing(workloads())
    file("goals.toml").write_text(goals.text(goals.write(workloads(), processes)), "utf-8")


def tried(table: Table, own: Plan, wanted: Sequence[str], processes: int) -> None:
    """All tries of all methods with the tuning seed."""
    do(tries(wanted, labels(own), range(own.tries), [rules().seeds.tuning]), table, processes)


def single(table: Table, own: Plan) -> dict[str, int]:
    """The one setting of each method for everything: of decisions.toml where it is of this plan, else from tuning."""
    if file("decisions.toml").exists():
        found = decide.read()
        if plan(found.plan) == own:
            return found.settings
    return common(table.rows, own, names(own, TUNING))


def tune(table: Table, own: Plan, processes: int) -> None:
    """Tries and final runs on the tuning workloads."""
    wanted = names(own, TUNING)
    refuse_missing([*wanted, *names(own, HELD)])
    tried(table, own, wanted, processes)
    choice = chosen(table.rows, own, wanted)
    do(finals(choice, common(table.rows, own, wanted), own, wanted), table, processes)


def final(table: Table, own: Plan, part: str) -> Final:
    """What came out on a part. UserError where runs are missing."""
    wanted = names(own, part)
    try:
        return scored(table.rows, chosen(table.rows, own, wanted), single(table, own), own, wanted)
    except KeyError as missing:
        raise UserError(f"runs are missing, such as {missing.args[0]}: run them first") from None


def write_decisions(table: Table, called: str) -> None:
    """Write decisions.toml from runs on tuning workloads, with the final seeds of rules.toml alone."""
    own = fixed(called)
    wanted = names(own, TUNING)
    found = scored(table.rows, chosen(table.rows, own, wanted), common(table.rows, own, wanted), own, wanted)
    settings = common(table.rows, own, wanted)
    made = decide.needless(decide.made(found, own, wanted, settings, called))
    file("decisions.toml").write_text(decide.text(made), "utf-8")


def held_out(table: Table, own: Plan, processes: int) -> None:
    """Tries and final runs on the held-out workloads, which the lock must allow."""
    wanted = names(own, HELD)
    refuse_missing(wanted)
    tried(table, own, wanted, processes)
    do(finals(chosen(table.rows, own, wanted), single(table, own), own, wanted), table, processes)


def everything(path: Path, called: str, processes: int) -> Table:
    """All runs of a plan, tuning first."""
    table, own = Table(path), plan(called)
    tune(table, own, processes)
    lock.refuse_unlocked(names(own, HELD))
    held_out(table, own, processes)
    return table
