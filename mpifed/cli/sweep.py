"""The command sweep."""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpifed.cli.main import say
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError, to_one_line
from mpifed.core.toml import toml_value
from mpifed.mpi import launcher
from mpifed.mpi.world import World
from mpifed.sweeps import grid, runner, slurm
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runner import ReportLine, SweepLayout
from mpifed.sweeps.runs import SweepProgress
from mpifed.sweeps.search import read_tables


def parse_layout(args: argparse.Namespace, world: World) -> SweepLayout:
    """Return the layout that the options request. UserError where they conflict with each other or the launcher."""
    launched = launcher.read_launcher()[0] is not None
    for name, minimum in (("jobs", 1), ("each", 0)):
        value = getattr(args, name)
        if value is not None and value < minimum:
            raise UserError(f"--{name} {value} is wrong: it must be at least {minimum}")
    if getattr(args, "slurm", False):
        if args.jobs is not None and args.each is not None:
            raise UserError("--jobs and --each do not go together: points run in processes or on groups of ranks")
        return SweepLayout()
    if launched and args.jobs is not None and args.jobs > 1:
        remedy = "say --each 1, which gives every point two ranks, or start without mpirun"
        raise UserError(f"--jobs {args.jobs} is wrong under mpirun: {remedy}")
    if args.each is not None and not launched:
        remedy = "say --jobs N, which runs N points at a time, a process each"
        raise UserError(f"--each {args.each} is wrong without mpirun: {remedy}")
    if args.each is not None and args.each >= world.size:
        raise UserError(f"--each {args.each} is wrong: a group has {args.each + 1} ranks, and there are {world.size}")
    return SweepLayout(args.jobs, args.each)


def sweep(args: argparse.Namespace, world: World) -> int:
    return print_lines(run_sweep(args, world), world.first, world.first and not args.quiet)


def print_lines(lines: Iterable[ReportLine], first: bool, speaks: bool) -> int:
    """Print lines about many runs, failures at the ``first`` rank, others where it ``speaks``; 1 if one failed."""
    failed = False
    for line in lines:
        failed = failed or not line.fine
        if first and not line.fine:
            sys.stderr.write(f"mpifed: {to_one_line(line.text)}\n")
        else:
            say(line.text, speaks)
    return int(failed)


def run_sweep(args: argparse.Namespace, world: World) -> Iterator[ReportLine]:
    """Run a sweep, on every rank, and yield the lines to print."""
    folder = Path(args.output)
    points: list[Point] = []
    with world.agreeing():
        layout_ = parse_layout(args, world)
        if world.first:
            points = plan_points(args, world)
    if args.slurm:
        size = slurm.ArraySize(args.tasks, args.jobs, args.each, args.whole_node)
        script = slurm.write_script(points, folder, repeat_arguments(args), args.order, size)
        yield ReportLine(f"sbatch {shlex.quote(str(script))}")
        # a note and no error: the nodes may have data that a login node lacks
        try:
            runner.check_data(points)
        except UserError as mistake:
            yield ReportLine(f"on this machine, {mistake}", False)
    elif args.dry_run:
        yield from runner.list_plan(points, folder, args.force)
    else:
        progress = SweepProgress(
            sys.stderr if world.first and not args.quiet else None, [point.cost for point in points]
        )
        yield from runner.sweep(points, folder, world, args.force, progress, layout_)


def repeat_arguments(args: argparse.Namespace) -> list[str]:
    """Return the command line with which the tasks of an array job sweep the same points."""
    words = [f"--{key}={value}" for key in ("grid", "zip") for value in getattr(args, key)]
    if args.methods:
        words.append(f"--methods={args.methods}")
    words += [f"--output={args.output}", f"--order={args.order}"]
    if args.force:
        words.append("--force")
    if args.quiet:
        words.append("-q")
    if args.each is not None:
        words.append(f"--each={args.each}")
    return [*args.study, *words]


def plan_points(args: argparse.Namespace, world: World) -> list[Point]:
    if (args.part or args.dry_run) if args.slurm else args.tasks is not None or args.whole_node:
        raise UserError("--tasks and --whole-node go with --slurm, and --part and --dry-run do not")
    words = [word for word in args.study if "=" in word]
    table = read_study([word for word in args.study if "=" not in word])
    axes = list(args.grid)
    if args.methods:
        axes.append("algorithm=" + ",".join(toml_value(table) for _, table in read_tables(args.methods)))
    points = grid.order_points(grid.points(table, words, axes, args.zip), args.order, args.part)
    # with --dry-run and --slurm this process has not connected to its ranks, but the launcher knows their number
    grid.check_ranks(points, max(world.size, launcher.read_launcher()[0] or 1) if args.each is None else args.each + 1)
    return points
