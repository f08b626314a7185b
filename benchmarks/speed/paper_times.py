"""python -m benchmarks.speed.paper_times --seeds 3: Table IV of FedGiA, the paper's seconds beside ours.

The cells, their settings and the paper's seconds stand in benchmarks/fedgia/table4.toml. Ours are the elapsed seconds of
one process until the run stops, without reading data and measuring, as median (least–most) over the seeds, each a new
draw of data and selections, after a run that does not count. ``ours : paper`` is that over the paper's, ``a round``
the same divided on either side by the rounds it took. The paper's seconds are means over 20 trials of MATLAB R2020b
on a laptop of 2.3 GHz: machine and language differ, so only the order of magnitude and the order of the algorithms say
something. Shown are FedGiA's rows; --only "" adds the others (some minutes). Blocks whose data are not in MPIFED_DATA are
left out.
"""

from __future__ import annotations

import argparse
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

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
    parser.add_argument("--seeds", type=int, default=3, help="number of draws (default: 3)")
    parser.add_argument("--only", default="FedGiA", help="blocks and rows whose name contains this (default: FedGiA)")
    parser.add_argument("--k0", help="values of k0, comma-separated (default: the table's)")
    parser.add_argument("--rounds", type=int, help="most rounds (default: the table's)")
    args = parser.parse_args()
    bench = benches.read("fedgia/table4")
    asked = [int(word) for word in args.k0.split(",")] if args.k0 else bench.values
    print(
        "ours: one process here; paper: MATLAB on a 2.3 GHz laptop. Machines differ.\n\n"
        f"{'':<11}{'k0':>3}   {'ours s':<26}{'paper s':>7}   {'ours : paper':<26}{'rounds':<12}{'paper':>6}   a round"
    )
    for block in bench.block:
        own = [
            run
            for run in runs(bench, args.seeds, "", args.only)
            if run.cell.block == block.name and run.cell.value in asked
        ]
        cells = {run.cell: [other for other in own if other.cell == run.cell] for run in own}
        if cells:
            print(block.name, flush=True)
        try:
            for index, (cell, found) in enumerate(cells.items()):
                theirs, column = block.paper[cell.row], bench.values.index(cell.value)
                if not index:
                    times(found[:1], args.rounds)
                seconds, rounds = float(theirs["tct"][column]), float(theirs["rounds"][column])
                show(cell.row, cell.value, times(found, args.rounds), seconds, rounds)
        except UserError as reason:
            print(f"  not run: {reason}")


def times(runs: list[Run], rounds: int | None) -> np.ndarray:
    """Seconds and rounds of each run: (runs, 2)."""
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
