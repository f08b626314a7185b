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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="number of draws (default: 3)")
    parser.add_argument("--only", default="FedGiA", help="blocks and rows whose name contains this (default: FedGiA)")
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
                options = {k: v for k, v in row.items() if k != "name"} | limit
                study = merge(merge(bench["study"], block["study"]), options)
                for column, value in enumerate(values):
                    if value in asked:
                        assign(study, key, value)
                        if row is rows[0] and value == asked[0]:
                            cell(study, 1)
                        show(row["name"], value, study, args.seeds, theirs["seconds"][column], theirs["rounds"][column])
        except UserError as reason:
            print(f"  not run: {reason}")


def cell(study: dict[str, Any], seeds: int) -> np.ndarray:
    """Seconds and rounds of each seed: (seeds, 2)."""
    with tempfile.TemporaryDirectory() as folder:
        found = [outcome(merge(study, {"seed": seed}), Path(folder) / f"{seed}.h5") for seed in range(seeds)]
    return np.array([(result["seconds"], result["rounds"]) for result in found])


def show(name: str, k0: int, study: dict[str, Any], seeds: int, seconds: float, rounds: float) -> None:
    """Run a cell and print its line."""
    ours, count = cell(study, seeds).T
    ratio, single = ours / seconds, (ours / count) / (seconds / rounds)
    print(f"  {name:<9}{k0:>3}   {spread(ours)!s:<26}{seconds:>7.2f}   {spread(ratio)!s:<26}{count.mean():<12.1f}"
          f"{rounds:>6.1f}   {spread(single)}", flush=True)


if __name__ == "__main__":
    main()
