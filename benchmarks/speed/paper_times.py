"""python -m benchmarks.speed.paper_times --seeds 3: Table IV of FedGiA, the paper's seconds beside ours.

The cells, their settings and the paper's seconds stand in benchmarks/fedgia/table4.toml. Ours are the elapsed seconds of
one process until the run stops, without reading data and measuring, as median (least–most) over the seeds, each a new
draw of data and selections; a first run of the cell with seed 0 is not counted. The last columns are ours : paper's, the
first of them as it stands and the second a round, for both take the number of rounds that their draws need. The paper's
seconds are MATLAB R2020b's on a laptop of 2.3 GHz, means over 20 trials: machine and language differ, so only the order
of magnitude and the order of the algorithms say something. Blocks whose data are not in MPIFED_DATA are left out.
"""
from __future__ import annotations

import argparse
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

from benchmarks.runner import assign, merge, outcome
from benchmarks.speed.common import spread
from mpifed.component import UserError

TABLE = Path(__file__).parent.parent / "fedgia" / "table4.toml"


def cell(study: dict[str, Any], seeds: int, folder: Path) -> np.ndarray:
    """Seconds and rounds of each seed: (seeds, 2)."""
    found = []
    for turn, seed in enumerate([0, *range(seeds)]):
        result = outcome(merge(study, {"seed": seed}), folder / f"{turn}.h5")
        (folder / f"{turn}.h5").unlink()
        found.append((result["seconds"], result["rounds"]))
    return np.array(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="number of draws (default: 3)")
    parser.add_argument("--only", default="", help="blocks and rows whose name contains this")
    parser.add_argument("--k0", help="values of k0, comma-separated (default: the table's)")
    parser.add_argument("--rounds", type=int, help="most rounds (default: the table's)")
    args = parser.parse_args()
    bench = tomllib.loads(TABLE.read_text("utf-8"))
    key, values = bench["columns"]["key"], bench["columns"]["values"]
    asked = [int(word) for word in args.k0.split(",")] if args.k0 else values
    limit = {} if args.rounds is None else {"rounds": args.rounds}
    print("ours: one process here; paper: MATLAB on a 2.3 GHz laptop. Machines differ.\n\n"
          f"{'':<11}{'k0':>3}   {'ours s':<26}{'paper s':>7}   {'ours : paper':<26}{'rounds':<12}{'paper':>6}   a round")
    for block in bench["block"]:
        rows = [row for row in block["rows"] if args.only in f"{block['name']} {row['name']}"]
        if rows:
            print(block["name"], flush=True)
        try:
            for row in rows:
                theirs = block["paper"][row["name"]]
                study = merge(merge(merge(bench["study"], block["study"]), {k: v for k, v in row.items() if k != "name"}), limit)
                for column, value in enumerate(values):
                    if value in asked:
                        assign(study, key, value)
                        show(row["name"], value, study, args.seeds, theirs["seconds"][column], theirs["rounds"][column])
        except UserError as reason:
            print(f"  not run: {reason}")


def show(name: str, k0: int, study: dict[str, Any], seeds: int, seconds: float, rounds: float) -> None:
    """Run a cell and print its line."""
    with tempfile.TemporaryDirectory() as folder:
        ours, count = cell(study, seeds, Path(folder)).T
    ratio, single = ours / seconds, (ours / count) / (seconds / rounds)
    print(f"  {name:<9}{k0:>3}   {spread(ours)!s:<26}{seconds:>7.2f}   {spread(ratio)!s:<26}{count.mean():<12.1f}"
          f"{rounds:>6.1f}   {spread(single)}", flush=True)


if __name__ == "__main__":
    main()
