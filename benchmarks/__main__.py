"""python -m benchmarks: rerun a table or figure of a paper and print ours beside the paper's numbers."""
from __future__ import annotations

import argparse
import os
import sys
import tomllib
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

HERE = Path(__file__).parent


def main() -> int:
    """List the benchmarks, or run one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is")
    run = commands.add_parser("run", help="run what is missing and print ours beside the paper's")
    run.add_argument("name", help="for example fedgia/table4")
    run.add_argument("--seeds", type=int, help="number of draws (default: the paper's)")
    run.add_argument("--only", default="", help="blocks and rows whose name contains this")
    run.add_argument("--to", type=Path, default=Path("results"), help="folder of the result files (default: results)")
    run.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at a time (default: the cores)")
    args = parser.parse_args()
    if args.command == "list":
        for file in sorted(HERE.glob("*/*.toml")):
            print(f"{file.parent.name}/{file.stem:<12} {tomllib.loads(file.read_text())['title']}")
        return 0
    file = HERE / f"{args.name}.toml"
    if not file.exists():
        print(f"benchmarks: there is no {args.name!r}; see python -m benchmarks list", file=sys.stderr)
        return 2
    from benchmarks.runner import report

    bench = tomllib.loads(file.read_text())
    report(bench, args.seeds or bench["seeds"], args.only, args.to / args.name, args.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
