"""python -m benchmarks.arena STEP: which method should I use; what came out is on docs/studies/arena.md.

``run`` enters a class of your own: --method own.py:LBFGS, and for each of its options that is to be tuned --range
'gamma=0.3..10 / r', r being the largest r_i.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.arena import plan, runs, study
from benchmarks.arena.plan import HELD, TUNING
from benchmarks.arena.runs import Table
from mpifed import UserError
from mpifed.sweeps.search import assign

COMMITTED = plan.file("committed.jsonl.gz")  # the rows of docs/studies/arena.md
STEPS = ("goals", "tune", "decide", "lock", "held-out", "all", "pack", "page", "run")


def main(words: list[str] | None = None) -> int:
    """Do a step. Returns 2 for a mistake of the user."""
    about, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=about, epilog=more)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--plan", help="a plan of rules.toml (default: full; of pack, page and run: committed)")
    parser.add_argument("--quick", action="store_true", help="the plan quick: about two minutes")
    parser.add_argument("--to", type=Path, default=Path("results/arena"), help="folder of the runs and of the page")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="runs at the same time")
    parser.add_argument("--method", help="of run: a class of your own, FILE.py:CLASS")
    parser.add_argument("--range", action="append", default=[], help="of run: OPTION=LOW..HIGH, with ' * r' or ' / r'")
    args = parser.parse_args(words)
    usual = "committed" if args.step in ("pack", "page", "run") else "full"
    called = "quick" if args.quick else args.plan or usual
    try:
        with threadpool_limits(1, "blas"):
            if args.step == "run":
                entered(args.method, args.range, called, args.to, args.processes)
            else:
                done(args.step, called, args.to, args.processes)
    except UserError as error:
        print(f"benchmarks.arena: {error}", file=sys.stderr)
        return 2
    return 0


def done(step: str, called: str, folder: Path, processes: int) -> None:
    """Do a step with a plan."""
    study.plan(called)
    if step == "goals":
        study.set_goals(processes)
    elif step == "tune":
        study.tune(rows(folder, called), called, processes)
    elif step == "decide":
        from benchmarks.arena import decide

        found = study.final(rows(folder, called), called, TUNING)
        plan.file("decisions.toml").write_text(decide.text(decide.decided(found), called), "utf-8")
    elif step == "lock":
        print(f"written to {plan.lock()}")
    elif step == "held-out":
        study.held_out(rows(folder, called), called, processes)
    elif step == "all":
        for one in ("tune", "decide", "lock", "held-out"):
            done(one, called, folder, processes)
    elif step == "pack":
        table = rows(folder, called)
        for part in (TUNING, HELD):
            study.final(table, called, part)  # refuses rows that the page could not be written from
        print(f"written to {runs.pack(table, COMMITTED)}")
    else:
        from benchmarks.arena.page import write

        print(f"written to {write(rows(folder, called), called, folder)}")


def rows(folder: Path, called: str) -> Table:
    """The rows of a folder; of the plan "committed" beside those that are committed."""
    return Table(folder / "runs.jsonl", COMMITTED if called == "committed" else None)


def entered(method: str | None, ranges: list[str], called: str, folder: Path, processes: int) -> None:
    """Run a user's own class by the rules, and print how it stands. UserError for a wrong range or class."""
    from benchmarks.arena import decide
    from benchmarks.arena.outcome import outcome
    from benchmarks.arena.tables import own_row

    file, _, label = (method or "").partition(":")
    if not label or not Path(file).is_file():
        raise UserError(f"--method {method} is wrong: it must be FILE.py:CLASS, such as own.py:LBFGS")
    if label in plan.labels():
        label += " (own)"
    table: dict[str, Any] = {"label": label, "name": method}
    for word in ranges:
        key, _, value = word.partition("=")
        if not plan.ranged(value):
            raise UserError(f"--range {word} is wrong: it must be OPTION=LOW..HIGH, such as 'gamma=0.3..10 / r'")
        assign(table, key, value)
    os.environ[plan.ENTERED] = json.dumps(table)
    kept = Table(folder / f"own-{called}.jsonl", COMMITTED if called == "committed" else folder / "runs.jsonl")
    carried = study.entered(kept, called, processes)
    found = [study.final(kept, called, part, carried) for part in (TUNING, HELD)]
    print(own_row(outcome(*found), decide.read(), label))


if __name__ == "__main__":
    sys.exit(main())
