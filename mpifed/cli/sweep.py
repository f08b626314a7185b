"""The command sweep."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpifed.cli.output import tell
from mpifed.cli.run import study, study_words
from mpifed.core.errors import UserError
from mpifed.mpi import launcher
from mpifed.mpi.world import World

if TYPE_CHECKING:
    from mpifed.sweeps.grid import Point
    from mpifed.sweeps.runner import Layout, Line


def options(commands: Any) -> None:
    """The command sweep."""
    command = commands.add_parser(
        "sweep",
        help="many runs in one launch, each with a result file",
        description="Run every combination of the values given. The same command again skips the runs that finished.",
    )
    study_words(command)
    command.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="KEY=VALUES",
        help="values with commas, or a range a:b or a:b:step without b: algorithm.k0=1,5,10 seed=0:20",
    )
    command.add_argument(
        "--zip", action="append", default=[], metavar="KEY=VALUES;KEY=VALUES", help="keys that change together"
    )
    command.add_argument(
        "-o", "--output", default="results", metavar="FOLDER", help="folder of results (default: results)"
    )
    command.add_argument(
        "--order", choices=("cost", "grid"), default="cost", help="cheapest first (default), or the order of the grids"
    )
    command.add_argument("--methods", metavar="FILE", help="every method in a file, such as best.toml of tune")
    share(command)
    command.add_argument(
        "--part", metavar="I/N", help="only the points I, I + N, I + 2N … of that order, counted from 0"
    )
    command.add_argument("--dry-run", action="store_true", help="print what would be run, and run nothing")
    command.add_argument(
        "--slurm", action="store_true", help="write sweep.sbatch, an array job, into the folder; run nothing"
    )
    command.add_argument("--tasks", type=int, metavar="N", help="tasks of the array job (default: by estimated cost)")
    command.add_argument("--whole-node", action="store_true", help="give every task of the array job a node of its own")
    command.add_argument("--force", action="store_true", help="overwrite results of other configurations")
    command.add_argument("-q", "--quiet", action="store_true", help="print only failures")
    command.set_defaults(act=sweep)


def share(command: Any) -> None:
    """How runs share the machine."""
    command.add_argument(
        "-j",
        "--jobs",
        type=int,
        metavar="N",
        help="run N points at a time, each in one process (default: the cores; fewer for a few seconds of work)",
    )
    command.add_argument(
        "--each",
        type=int,
        metavar="R",
        help="under mpirun: groups of R ranks for clients and one for the server run a point each (0: one for all)",
    )


def layout(args: argparse.Namespace, world: World) -> Layout:
    """The layout that the options ask for. UserError where they do not fit each other or the launcher."""
    from mpifed.sweeps.runner import Layout

    launched = launcher.announced()[0] is not None
    for name, least in (("jobs", 1), ("each", 0)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise UserError(f"--{name} {value} is wrong: it must be at least {least}")
    if getattr(args, "slurm", False):
        if args.jobs is not None and args.each is not None:
            raise UserError("--jobs and --each do not go together: points run in processes or on groups of ranks")
        return Layout()
    if launched and args.jobs is not None and args.jobs > 1:
        right = "say --each 1, which gives every point two ranks, or start without mpirun"
        raise UserError(f"--jobs {args.jobs} is wrong under mpirun: {right}")
    if args.each is not None and not launched:
        right = "say --jobs N, which runs N points at a time, a process each"
        raise UserError(f"--each {args.each} is wrong without mpirun: {right}")
    if args.each is not None and args.each >= world.size:
        raise UserError(f"--each {args.each} is wrong: a group has {args.each + 1} ranks, and there are {world.size}")
    return Layout(args.jobs, args.each)


def sweep(args: argparse.Namespace, world: World) -> int:
    """The command sweep, on every rank; 1 if a point failed."""
    return tell(swept(args, world), world.first, world.first and not args.quiet)


def swept(args: argparse.Namespace, world: World) -> Iterator[Line]:
    """Carry out a sweep, on every rank, and yield the lines to print."""
    from mpifed.sweeps import runner, slurm
    from mpifed.sweeps.overall import Overall

    folder = Path(args.output)
    points: list[Point] = []
    with world.agreeing():
        shape = layout(args, world)
        if world.first:
            points = planned(args, world)
    if args.slurm:
        given = [f"--{key}={value}" for key in ("grid", "zip") for value in getattr(args, key)]
        given += [f"--methods={args.methods}"] * bool(args.methods)
        more = ["--force"] * args.force + ["-q"] * args.quiet + [f"--each={args.each}"] * (args.each is not None)
        words = [*args.study, *given, f"--output={args.output}", f"--order={args.order}", *more]
        size = slurm.Size(args.tasks, args.jobs, args.each, args.whole_node)
        script = slurm.write(points, folder, words, args.order, size)
        yield runner.Line(f"sbatch {shlex.quote(str(script))}")
        try:
            runner.look_for_data(points)
        except UserError as mistake:
            yield runner.Line(f"on this machine, {mistake}", False)
    elif args.dry_run:
        yield from runner.listing(points, folder, args.force)
    else:
        progress = Overall(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
        yield from runner.sweep(points, folder, world, args.force, progress, shape)


def planned(args: argparse.Namespace, world: World) -> list[Point]:
    """The points of a sweep in their order. UserError where an option or a point is invalid."""
    from mpifed.sweeps import grid

    if (args.part or args.dry_run) if args.slurm else args.tasks is not None or args.whole_node:
        raise UserError("--tasks and --whole-node go with --slurm, and --part and --dry-run do not")
    words = [word for word in args.study if "=" in word]
    table = study([word for word in args.study if "=" not in word])
    axes = [*args.grid, *(methods(args.methods) if args.methods else [])]
    points = grid.ordered(grid.points(table, words, axes, args.zip), args.order, args.part)
    grid.hosted(points, max(world.size, launcher.announced()[0] or 1) if args.each is None else args.each + 1)
    return points


def methods(path: str) -> list[str]:
    """The methods in a file, as values of a grid."""
    from mpifed.core.toml import toml_value
    from mpifed.sweeps.search import read

    return ["algorithm=" + ",".join(toml_value(table) for _, table in read(path))]
