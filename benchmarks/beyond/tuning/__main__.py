"""python -m benchmarks.beyond.tuning a9a [METHOD …]: tune methods on a data set at the budget of plan.toml.

What has run is kept, and is not run again. Every setting is told as a comment; the best of each method are the rows of
a block for a benchmark file, in which clients differ.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.beyond.tuning.plan import comparison, plans, read
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.mpi.world import World
from mpifed.sweeps.runner import SweepLayout, SweepTally
from mpifed.sweeps.runs import PointRunner, SweepProgress
from mpifed.sweeps.tune import best_settings, plan_points, tune


def main() -> None:
    """Run what is missing, and print every setting and the best of each method."""
    tuning = read()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beyond.tuning", description=__doc__)
    parser.add_argument("data", choices=tuning.data)
    parser.add_argument("methods", nargs="*", help="only these, by label")
    parser.add_argument("--to", type=Path, default=Path("results/tuning"), help="folder (default: results/tuning)")
    parser.add_argument("--processes", type=int, help="runs at the same time (default: number of cores)")
    args = parser.parse_args()
    folder = args.to / args.data
    try:
        wanted = plans(tuning, args.data, args.methods)
    except UserError as mistake:
        sys.exit(f"benchmarks.beyond.tuning: {mistake}")
    runs = [point for plan in wanted for point in plan_points(plan).values()]
    progress = SweepProgress(sys.stderr, [point.cost for point in runs])
    for line in tune(
        runs, PointRunner(folder, World(), False, progress), SweepLayout(args.processes), SweepTally(runs, progress)
    ):
        print(line.text, file=sys.stderr)
    print("[[block]]", f"name = {toml_value(args.data)}", "optimum = true", sep="\n")
    print(f"study = {toml_value(comparison(tuning, args.data, wanted[0]))}", "rows = [", sep="\n")
    for plan in wanted:
        ((label, tried, best, edges),) = best_settings(plan, folder)
        for one in tried:
            print(f"  # {one.middle.value:8.4g} s  gap {one.middle.near:8.1e}  {toml_value(one.setting.options)}")
        row = {"name": label, "algorithm": best.setting.algorithm}
        passes = plan.study["system"].get("passes")
        row |= {} if passes is None else {"system": {"passes": passes}}
        print(f"  {toml_value(row)},  # {best.middle.value:.4g} s{''.join(f'; {edge}' for edge in edges)}")
    print("]", flush=True)


if __name__ == "__main__":
    main()
