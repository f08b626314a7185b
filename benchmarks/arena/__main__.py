"""python -m benchmarks.arena goals | tune | decide | lock | held-out | all | page: which method should I use.

What came out is on docs/studies/arena.md.
"""

import argparse
import os
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.arena import lock, plan, study
from benchmarks.arena.runs import Table
from mpifed import UserError

COMMITTED = plan.file("committed.jsonl.gz")  # the rows of docs/studies/arena.md
STEPS = ("goals", "tune", "decide", "lock", "held-out", "all", "page")


def main(words: list[str] | None = None) -> int:
    """Do a step. Returns 2 for a mistake of the user."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--plan", default="full", help="a plan of rules.toml (default: full)")
    parser.add_argument("--quick", action="store_true", help="the plan quick: about two minutes")
    parser.add_argument("--to", type=Path, default=Path("results/arena"), help="folder of the runs and of the page")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="runs at the same time")
    args = parser.parse_args(words)
    called = "quick" if args.quick else args.plan
    try:
        with threadpool_limits(1, "blas"):
            done(args.step, called, args.to, args.processes)
    except UserError as error:
        print(f"benchmarks.arena: {error}", file=sys.stderr)
        return 2
    return 0


def done(step: str, called: str, folder: Path, processes: int) -> None:
    """Do a step with a plan."""
    path = folder / "runs.jsonl"
    own = study.plan(called)
    if step == "goals":
        study.set_goals(processes)
    elif step == "tune":
        study.tune(Table(path), own, processes)
    elif step == "decide":
        study.write_decisions(Table(path), called)
    elif step == "lock":
        print(f"written to {lock.lock()}")
    elif step == "held-out":
        study.held_out(Table(path), own, processes)
    elif step == "all":
        study.everything(path, called, processes)
    else:
        from benchmarks.arena.page import write

        print(f"written to {write(Table(path if path.exists() else COMMITTED), called, folder)}")


if __name__ == "__main__":
    sys.exit(main())
