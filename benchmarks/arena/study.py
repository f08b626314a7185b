"""The steps of the study, each of which does what is missing: tries and final runs on a part, decisions, the page."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.arena import decide, goals, lock
from benchmarks.arena.plan import Plan, file, labels, rules, workloads
from benchmarks.arena.runs import Table, do, tries
from benchmarks.arena.scores import Final, chosen, common, finals, names, scored
from mpifed import UserError

TUNING, HELD = "tuning", "held-out"


def plan(name: str) -> Plan:
    """A plan of rules.toml. UserError for an unknown one."""
    if name not in rules().plan:
        raise UserError(f"--plan {name} is wrong: there are {', '.join(rules().plan)}")
    return rules().plan[name]


def set_goals(processes: int) -> None:
    """Write goals.toml, with the references' runs alone."""
    file("goals.toml").write_text(goals.text(goals.write(workloads(), processes)), "utf-8")


def tried(table: Table, own: Plan, wanted: Sequence[str], processes: int) -> None:
    """All tries of all methods with the tuning seed."""
    do(tries(wanted, labels(own), range(own.tries), [rules().seeds.tuning]), table, processes)


def single(table: Table, own: Plan) -> dict[str, int]:
    """The one setting of each method for everything: of decisions.toml where it is of this plan, else from tuning."""
    if file("decisions.toml").exists():
        found = decide.read()
        if rules().plan[found.plan] == own:
            return found.settings
    return common(table.rows, own, names(own, TUNING))


def tune(table: Table, own: Plan, processes: int) -> None:
    """Tries and final runs on the tuning workloads."""
    wanted = names(own, TUNING)
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
    """Write decisions.toml from runs on tuning workloads."""
    own = plan(called)
    wanted = names(own, TUNING)
    found = scored(table.rows, chosen(table.rows, own, wanted), common(table.rows, own, wanted), own, wanted)
    settings = common(table.rows, own, wanted)
    made = decide.needless(decide.made(found, own, wanted, settings, called))
    file("decisions.toml").write_text(decide.text(made), "utf-8")


def held_out(table: Table, own: Plan, processes: int) -> None:
    """Tries and final runs on the held-out workloads, which the lock must allow."""
    wanted = names(own, HELD)
    tried(table, own, wanted, processes)
    do(finals(chosen(table.rows, own, wanted), single(table, own), own, wanted), table, processes)


def everything(path: Path, called: str, processes: int) -> Table:
    """All runs of a plan, tuning first."""
    table, own = Table(path), plan(called)
    tune(table, own, processes)
    lock.refuse_unlocked(names(own, HELD))
    held_out(table, own, processes)
    return table
