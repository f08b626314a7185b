"""python -m benchmarks.speed.studies.paper_times --seeds 3: Table IV of FedGiA, the paper's seconds beside ours.

Cells, settings and the paper's seconds are in benchmarks/fedgia/table4.toml. Ours are the elapsed seconds of one
process until the run stops, without loading data and evaluation, as median (smallest–largest) over the seeds, after a
warm-up run. A seed sets data and selections. ``ours : paper`` is the ratio of the seconds, ``per round`` the ratio of
seconds per round. The paper's seconds are means over 20 trials of MATLAB R2020b on a laptop with 2.3 GHz. Machine and
language differ, so only the order of magnitude and the order of the algorithms are comparable.

By default only FedGiA's rows run; --only "" adds the others (some minutes). Blocks whose data are not in MPIFED_DATA
are left out.
"""

import argparse

import msgspec
import numpy as np

from benchmarks import bench as benches
from benchmarks.grid import Run, runs
from benchmarks.speed.common import spread
from mpifed import UserError
from mpifed.experiment import run as launch
from mpifed.experiment.job import Job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--only", default="FedGiA", help="blocks and rows whose name contains this (default: FedGiA)")
    parser.add_argument("--k0", help="values of k0, comma-separated (default: the table's)")
    parser.add_argument("--rounds", type=int, help="maximum number of rounds (default: the table's)")
    args = parser.parse_args()
    bench = benches.read("fedgia/table4")
    columns = [int(word) for word in args.k0.split(",")] if args.k0 else bench.values
    print(
        "ours: one process here; paper: MATLAB on a 2.3 GHz laptop. The machines differ.\n\n"
        f"{'':<11}{'k0':>3}   {'ours s':<26}{'paper s':>7}   {'ours : paper':<26}{'rounds':<12}{'paper':>6}   per round"
    )
    for block in bench.block:
        own = [
            run
            for run in runs(bench, args.seeds, "", args.only)
            if run.cell.block == block.name and run.cell.value in columns
        ]
        cells = {run.cell: [other for other in own if other.cell == run.cell] for run in own}
        if cells:
            print(block.name, flush=True)
        try:
            for index, (cell, mine) in enumerate(cells.items()):
                theirs, column = block.paper[cell.row], bench.values.index(cell.value)
                if index == 0:
                    times(mine[:1], args.rounds)  # warm up
                seconds, rounds = float(theirs["tct"][column]), float(theirs["rounds"][column])
                show(cell.row, cell.value, times(mine, args.rounds), seconds, rounds)
        except UserError as reason:
            print(f"  not run: {reason}")


def times(runs: list[Run], rounds: int | None) -> np.ndarray:
    """Do the runs. Returns seconds and rounds of each: (runs, 2)."""
    found = []
    for run in runs:
        config = run.config if rounds is None else msgspec.structs.replace(run.config, rounds=rounds)
        recorder = launch.start(Job(config))
        assert recorder is not None
        result = recorder.result()
        found.append((result.tct, result.cr))
    return np.array(found)


def show(name: str, k0: int, found: np.ndarray, seconds: float, rounds: float) -> None:
    """Print the line of a cell."""
    ours, count = found.T
    ratio, single = ours / seconds, (ours / count) / (seconds / rounds)
    print(
        f"  {name:<9}{k0:>3}   {spread(ours)!s:<26}{seconds:>7.2f}   {spread(ratio)!s:<26}{count.mean():<12.1f}"
        f"{rounds:>6.1f}   {spread(single)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
