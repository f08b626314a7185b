"""python -m benchmarks: rerun the tables and figures of the five papers, our numbers beside the paper's."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import bench as benches
from benchmarks import outcome, report, running
from benchmarks.grid import Run, runs
from benchmarks.report import Chosen, committed, counts, keep, left_for_later, without_rows
from mpifed import UserError
from mpifed.core.errors import reason
from mpifed.mpi.launcher import read_launcher


class Work(NamedTuple):
    """What to do: the runs of each benchmark, as points of a sweep, and why some runs cannot be done."""

    chosen: list[Chosen]
    runs: list[list[Run]]
    points: list[Any]
    failed: dict[str, str]


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the benchmarks")
    run = commands.add_parser("run", help="run what is missing of one benchmark, print its tables, draw its pictures")
    run.add_argument("name", help="for example fedgia/table4")
    run.add_argument("--only", default="", help="only the blocks and rows whose name contains this text")
    run.set_defaults(new=False)
    report = commands.add_parser("report", help="run all benchmarks and write one report with tables and pictures")
    report.add_argument("name", nargs="*", help="folders or benchmarks, fedgia flame/table2 (default: all)")
    report.add_argument("--counts", action="store_true", help="run nothing; print the counts and what is off or open")
    report.add_argument("--new", action="store_true", help="only runs that have no committed row; no tables")
    keep = commands.add_parser("rows", help="add the rows of existing results, from which the docs are counted")
    keep.add_argument("name", nargs="*", help="folders or benchmarks (default: all)")
    keep.add_argument("--to", type=Path, default=Path("results"), help="folder of the result files (default: results)")
    keep.set_defaults(seeds=None, quick=False)
    tables = commands.add_parser("tables", help="run nothing; print the tables and claims of the committed rows")
    tables.add_argument("name", nargs="*", help="folders or benchmarks (default: all)")
    tables.set_defaults(seeds=None, quick=False)
    for command in (run, report):
        option = command.add_argument
        option("--seeds", type=int, help="repetitions (default: run: the paper's number; report: fewer)")
        option("--quick", action="store_true", help="3 seeds and smaller grids; results go to quick/ in the folder")
        option("--to", type=Path, default=Path("results"), help="folder of the result files (default: results)")
        option("--processes", type=int, default=os.cpu_count(), help="runs at the same time (default: number of cores)")
        option("--slurm", action="store_true", help="write a SLURM array job that does the runs; run nothing")
        option("--tasks", type=int, help="tasks of the array job (default: by the estimated cost)")
        option("--part", metavar="I/N", help="only the runs I, I + N, I + 2N, …; no tables")
    return top


def main() -> int:
    """Run a command. Returns 0 on success, 1 after an interrupt or a failed write, 2 for a mistake in the input."""
    args = parser().parse_args()
    first = read_launcher()[1] == 0
    try:
        if args.command == "list":
            for name in benches.names() if first else ():
                print(f"{name:<22} {benches.read(name).title}")
            return 0
        if args.command == "tables":
            print("\n".join(committed(one.name for one in chosen(args))))
            return 0
        return existing(args) if args.command == "rows" or getattr(args, "counts", False) else work(args)
    except UserError as mistake:
        if first:
            print(f"benchmarks: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks: interrupted; run the same command again to continue", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader has closed the pipe; keep Python's flush at exit from failing too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        file = f"{error.filename} cannot be written: " if error.filename else ""
        print(f"benchmarks: {file}{reason(error)}", file=sys.stderr)
        return 1


def chosen(args: argparse.Namespace) -> list[Chosen]:
    """The benchmarks that the command line names."""
    for option in ("seeds", "processes"):
        if (given := getattr(args, option, None)) is not None and given < 1:
            raise UserError(f"--{option} {given} is wrong: it must be at least 1")
    words = [args.name] if args.command == "run" else args.name
    known = {name: (name,) if args.command == "run" else (name, name.split("/")[0]) for name in benches.names()}
    if unknown := [word for word in words if not any(word in called for called in known.values())]:
        raise UserError(f"there is no benchmark {unknown[0]!r}; see python -m benchmarks list")
    names = [name for name, called in known.items() if not words or set(called) & set(words)]
    found = []
    for name in names:
        bench = benches.read(name)
        which = "seeds" if args.command == "run" else "report"
        usual = bench.quick.seeds if args.quick else getattr(bench, which)
        grid = bench.reduced() if args.quick else bench
        found.append(Chosen(name, grid.repeated("" if args.quick or args.seeds else which), args.seeds or usual))
    return found


def words(args: argparse.Namespace) -> list[str]:
    """The command line of an array task that does a part of the runs."""
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
    """Run what is missing, then print or write the tables and draw the pictures."""
    from mpifed.core import signals
    from mpifed.mpi import launcher
    from mpifed.mpi.world import World

    size, rank = read_launcher()
    folder = args.to / "quick" if args.quick else args.to
    world = launcher.connect_ranks() if size is not None and size > 1 and not args.slurm else World()
    if world.size == 1:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    else:
        signals.listen_for_signals()
    todo = Work([], [], [], {})
    with world.agreeing():
        if rank == 0:
            todo = prepared(args, folder)
    if args.slurm:
        if rank == 0:
            print(f"sbatch {running.array(todo.points, folder, words(args), args.tasks)}")
        return 0
    failed = todo.failed | running.do(todo.points, folder, world, args.processes)
    if rank or args.part or args.new:
        return 0
    if args.command == "run":
        show(todo.chosen[0], todo.runs[0], folder, failed)
    else:
        write(args, todo.chosen, folder, failed)
    return 0


def prepared(args: argparse.Namespace, folder: Path) -> Work:
    """Read the benchmarks, list their runs and create the folders of their results."""
    from mpifed.sweeps.grid import order_points

    order_points([], "grid", args.part)  # refuse a wrong --part before anything else
    found = chosen(args)
    only = getattr(args, "only", "")
    listed = [list(runs(one.bench, one.seeds, one.name, only)) for one in found]
    if only and not any(listed):
        block = found[0].bench.block[0]
        example = f"{block.name} {block.rows[0]['name']}"
        raise UserError(f"--only {only} is wrong: it must be a part of a block and its row, such as {example!r}")
    if args.new:
        listed = [without_rows(some, one.name) for one, some in zip(found, listed, strict=True)]
    later = {} if args.command == "run" else left_for_later(found, listed, folder)
    with writing_to(folder):
        points, failed = running.points([run for some in listed for run in some if run.name not in later], folder)
        points = order_points(points, "grid", args.part)
        for parent in {(folder / point.file).parent for point in points}:
            parent.mkdir(parents=True, exist_ok=True)
    return Work(found, listed, points, failed | later)


def existing(args: argparse.Namespace) -> int:
    """Print the counts of existing results, or write their rows."""
    folder = args.to / "quick" if args.quick else args.to
    lines = keep(chosen(args), folder) if args.command == "rows" else [counts(chosen(args), folder, args.processes)]
    for line in lines:
        print(line, flush=True)
    return 0


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise UserError if the folder of --to cannot be written."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"--to {folder} is wrong: {why}; it must be a folder that can be written") from None


def show(one: Chosen, runs: list[Run], folder: Path, failed: dict[str, str]) -> None:
    """Print the tables of a benchmark and save its pictures."""
    found = outcome.collect(one.name, one.bench, one.seeds, runs, folder, failed)
    print(report.screen(found) + "\n")
    made, lack = report.save_pictures(found, folder)
    for path in made:
        print(f"picture: {path}")
    if lack:
        print(f"benchmarks: {lack}", file=sys.stderr)


def write(args: argparse.Namespace, chosen: list[Chosen], folder: Path, failed: dict[str, str]) -> None:
    """Write the report, and print one line for each benchmark as it is done."""
    tasks = [
        (*one, folder, {run: why for run, why in failed.items() if run.startswith(f"{one.name}/")}) for one in chosen
    ]
    sections = list[report.Section]()
    for one in running.side_by_side(report.section, tasks, args.processes):
        if one.lack and not any(other.lack for other in sections):
            print(f"benchmarks: {one.lack}", file=sys.stderr)
        print(f"{one.name:<22} {one.summary}", flush=True)
        sections.append(one)
    print(f"written to {report.write(sections, folder)}")


if __name__ == "__main__":
    code = main()
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    sys.exit(code)
