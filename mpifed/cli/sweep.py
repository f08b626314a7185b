"""The command sweep."""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpifed.cli.main import say
from mpifed.cli.run import study
from mpifed.core.errors import UserError, sentence
from mpifed.core.toml import toml_value
from mpifed.mpi import launcher
from mpifed.mpi.world import World
from mpifed.sweeps import grid, runner, slurm
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runner import Layout, Line
from mpifed.sweeps.runs import Overall
from mpifed.sweeps.search import read


def layout(args: argparse.Namespace, world: World) -> Layout:
    """The layout that the options ask for. UserError where they do not fit each other or the launcher."""
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
    return tell(swept(args, world), world.first, world.first and not args.quiet)


def tell(lines: Iterable[Line], first: bool, speaks: bool) -> int:
    """Print lines about many runs, failures at the ``first`` rank and others where it ``speaks``; 1 if one failed."""
    failed = False
    for line in lines:
        failed = failed or not line.fine
        if first and not line.fine:
            sys.stderr.write(f"mpifed: {sentence(line.text)}\n")
        else:
            say(line.text, speaks)
    return int(failed)


def swept(args: argparse.Namespace, world: World) -> Iterator[Line]:
    """Carry out a sweep, on every rank, and yield the lines to print."""
    folder = Path(args.output)
    points: list[Point] = []
    with world.agreeing():
        shape = layout(args, world)
        if world.first:
            points = planned(args, world)
    if args.slurm:
        size = slurm.Size(args.tasks, args.jobs, args.each, args.whole_node)
        script = slurm.write(points, folder, again(args), args.order, size)
        yield Line(f"sbatch {shlex.quote(str(script))}")
        # told, and no error: the nodes may have data that a login node does not have
        try:
            runner.look_for_data(points)
        except UserError as mistake:
            yield Line(f"on this machine, {mistake}", False)
    elif args.dry_run:
        yield from runner.listing(points, folder, args.force)
    else:
        progress = Overall(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
        yield from runner.sweep(points, folder, world, args.force, progress, shape)


def again(args: argparse.Namespace) -> list[str]:
    """The command line with which the tasks of an array job sweep the same points."""
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


def planned(args: argparse.Namespace, world: World) -> list[Point]:
    if (args.part or args.dry_run) if args.slurm else args.tasks is not None or args.whole_node:
        raise UserError("--tasks and --whole-node go with --slurm, and --part and --dry-run do not")
    words = [word for word in args.study if "=" in word]
    table = study([word for word in args.study if "=" not in word])
    axes = list(args.grid)
    if args.methods:
        axes.append("algorithm=" + ",".join(toml_value(table) for _, table in read(args.methods)))
    points = grid.ordered(grid.points(table, words, axes, args.zip), args.order, args.part)
    # the launcher is asked too: with --dry-run and --slurm this process has not connected to its ranks
    grid.hosted(points, max(world.size, launcher.announced()[0] or 1) if args.each is None else args.each + 1)
    return points
