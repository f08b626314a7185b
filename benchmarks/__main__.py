"""python -m benchmarks: rerun the tables and figures of the five papers, ours beside the paper's numbers."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from benchmarks import bench as benches  # noqa: E402
from benchmarks.bench import Bench, Run  # noqa: E402
from mpifed.core.errors import UserError, reason  # noqa: E402
from mpifed.mpi.launcher import announced  # noqa: E402


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is")
    for command, help in (
        ("run", "run what is missing of one benchmark, print ours beside the paper's, draw"),
        ("report", "the same for all, in one report with pictures"),
    ):
        own = commands.add_parser(command, help=help)
        if command == "run":
            own.add_argument("name", help="for example fedgia/table4")
            own.add_argument("--only", default="", help="blocks and rows whose name contains this")
        else:
            own.add_argument("name", nargs="*", help="folders or benchmarks, fedgia flame/table2 (default: all)")
        own.add_argument(
            "--seeds", type=int, help="number of draws (default: the paper's; report: what an hour allows)"
        )
        own.add_argument("--quick", action="store_true", help="3 draws and smaller grids, in quick/ of the folder")
        own.add_argument(
            "--to", type=Path, default=Path("results"), help="folder of the result files (default: results)"
        )
        own.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at a time (default: the cores)")
        own.add_argument("--slurm", action="store_true", help="write an array job that does the runs; run nothing")
        own.add_argument("--tasks", type=int, help="tasks of the array job (default: by the estimate)")
        own.add_argument("--part", metavar="I/N", help="only the runs I, I + N, I + 2N …, no tables")
    return top


def main() -> int:
    """Run a command; 0 done, 1 interrupted, 2 the user's input was wrong."""
    args = parser().parse_args()
    speaks = announced()[1] == 0
    try:
        if args.command == "list":
            for name in benches.names() if speaks else ():
                print(f"{name:<22} {benches.read(name).title}")
            return 0
        return work(args)
    except UserError as mistake:
        if speaks:
            print(f"benchmarks: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks: interrupted; the same command goes on", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read has enough; Python's own flush at the end too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename} cannot be written: " if error.filename else ""
        print(f"benchmarks: {where}{reason(error)}", file=sys.stderr)
        return 1


def chosen(args: argparse.Namespace) -> list[tuple[str, Bench, int]]:
    """The benchmarks asked for, with their grids and numbers of draws."""
    if args.seeds is not None and args.seeds < 1:
        raise UserError(f"--seeds {args.seeds} is wrong: it must be at least 1")
    words = [args.name] if args.command == "run" else args.name
    names = [name for name in benches.names() if not words or name in words or name.split("/")[0] in words]
    if unknown := [word for word in words if not any(word in (name, name.split("/")[0]) for name in names)]:
        raise UserError(f"there is no benchmark {unknown[0]!r}; see python -m benchmarks list")
    found = []
    for name in names:
        bench = benches.read(name)
        usual = bench.quick.seeds if args.quick else bench.seeds if args.command == "run" else bench.report
        found.append((name, bench.reduced() if args.quick else bench, args.seeds or usual))
    return found


def words(args: argparse.Namespace) -> list[str]:
    """The command line of a task that does a part of the runs."""
    names = [args.name] if args.command == "run" else args.name
    given = {"--only": getattr(args, "only", ""), "--seeds": args.seeds}
    return [
        args.command,
        *names,
        *(f"{key}={value}" for key, value in given.items() if value),
        *(["--quick"] * args.quick),
        f"--to={args.to}",
    ]


def work(args: argparse.Namespace) -> int:
    """Run what is missing, then print, draw and write."""
    from benchmarks import running
    from mpifed.core import signals
    from mpifed.experiment import run as launch
    from mpifed.mpi import launcher
    from mpifed.sweep.grid import ordered

    size, rank = announced()
    folder, begun = args.to / "quick" if args.quick else args.to, time.monotonic()
    world = launcher.connect() if size is not None and size > 1 and not args.slurm else None
    if world is None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    else:
        signals.listen()
    wanted: list[tuple[str, Bench, int]] = []
    runs: list[list[Run]] = []
    points: list[Any] = []
    failed: dict[str, str] = {}
    error = None
    if rank == 0:
        try:
            ordered([], "grid", args.part)
            wanted = chosen(args)
            runs = [list(benches.runs(bench, seeds, name, getattr(args, "only", ""))) for name, bench, seeds in wanted]
            points, failed = running.points([run for some in runs for run in some], folder)
            points = ordered(points, "grid", args.part)
            for parent in {(folder / point.file).parent for point in points}:
                parent.mkdir(parents=True, exist_ok=True)
        except UserError as mistake:
            error = str(mistake)
        except OSError as refused:
            error = f"--to {folder} is wrong: {refused.strerror or refused}; it must be a folder that can be written"
    launch.agree(world, error)
    if args.slurm:
        if rank == 0:
            print(f"sbatch {running.array(points, folder, words(args), args.tasks)}")
        return 0
    failed |= running.do(points, folder, world, args.processes)
    if rank or args.part:
        return 0
    if args.command == "run":
        screen(*wanted[0], runs[0], folder, failed)
    else:
        tell(args, wanted, folder, failed, begun)
    return 0


def screen(name: str, bench: Bench, seeds: int, runs: list[Run], folder: Path, failed: dict[str, str]) -> None:
    """Print the tables of a benchmark, and draw."""
    from benchmarks import outcome, report

    found = outcome.collect(name, bench, seeds, runs, folder, failed)
    print(report.screen(found) + "\n")
    made, lack = report.pictures(found, folder)
    for path in made:
        print(f"drawn: {path}")
    if lack:
        print(f"benchmarks: {lack}", file=sys.stderr)


def tell(
    args: argparse.Namespace, wanted: list[tuple[str, Bench, int]], folder: Path, failed: dict[str, str], begun: float
) -> None:
    """Write the report, a line of outcome a benchmark on the way."""
    from benchmarks import report, running

    told = list[report.Told]()
    tasks = [
        (*one, folder, {run: why for run, why in failed.items() if run.startswith(f"{one[0]}/")}) for one in wanted
    ]
    for one in running.side_by_side(report.tell, tasks, args.processes):
        if one.lack and not any(other.lack for other in told):
            print(f"benchmarks: {one.lack}", file=sys.stderr)
        print(f"{one.name:<22} {one.summary}", flush=True)
        told.append(one)
    print("\n".join(f"written to {path}" for path in report.write(told, folder, time.monotonic() - begun)))


if __name__ == "__main__":
    code = main()
    if "mpifed.mpi.world" in sys.modules:
        sys.modules["mpifed.mpi.world"].leave(code)
    sys.exit(code)
