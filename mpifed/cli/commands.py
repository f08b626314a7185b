"""The commands sweep, compare and plot: from their options to what they print."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpifed.core.errors import UserError

if TYPE_CHECKING:
    from mpifed.mpi.world import World
    from mpifed.sweep.grid import Point
    from mpifed.sweep.runner import Line

REFUSED = {"timeline": ("x", "y", "log", "all"), "page": ("x", "y", "all"), "box": ("x",)}  # options without effect


def swept(args: argparse.Namespace, base: Callable[[Sequence[str]], dict[str, Any]], world: World) -> Iterator[Line]:
    """Carry out a sweep, on every rank, and yield the lines to print. ``base`` reads the experiment file."""
    from mpifed.experiment.progress import Overall
    from mpifed.sweep import runner, slurm

    folder = Path(args.output)
    points: list[Point] = []
    with world.agreeing():
        if world.first:
            points = planned(args, base, world)
    if args.slurm:
        given = [f"--{key}={value}" for key in ("grid", "zip") for value in getattr(args, key)]
        more = ["--force"] * args.force + ["-q"] * args.quiet
        words = [*args.study, *given, f"--output={args.output}", f"--order={args.order}", *more]
        script = slurm.write(points, folder, words, args.order, args.tasks)
        yield runner.Line(f"sbatch {shlex.quote(str(script))}")
    elif args.dry_run:
        yield from runner.listing(points, folder, args.force)
    else:
        progress = Overall(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
        yield from runner.sweep(points, folder, world, args.force, progress)


def planned(args: argparse.Namespace, base: Callable[[Sequence[str]], dict[str, Any]], world: World) -> list[Point]:
    """The points of a sweep in their order. UserError where an option or a point is invalid."""
    from mpifed.mpi.launcher import announced
    from mpifed.sweep import grid

    if (args.part or args.dry_run) if args.slurm else args.tasks is not None:
        raise UserError("--tasks goes with --slurm, and --part and --dry-run do not")
    words = [word for word in args.study if "=" in word]
    table = base([word for word in args.study if "=" not in word])
    points = grid.ordered(grid.points(table, words, args.grid, args.zip), args.order, args.part)
    grid.hosted(points, max(world.size, announced()[0] or 1))
    return points


def compare(args: argparse.Namespace, bold: bool) -> str:
    """The table; ``bold``: for a terminal that shows bold text."""
    from mpifed.report.compare import Layout, compare
    from mpifed.report.groups import read

    by = [] if args.by == "none" else names([args.by])
    columns = names([args.columns or ""]) or None
    return compare(read(args.result), Layout(by, columns, args.sort, args.all, args.format, bold))


def plot(args: argparse.Namespace) -> str:
    """Draw the picture; the line that says where it is."""
    from mpifed.report import boxplot, plot, style, timeline
    from mpifed.report.groups import finished, read

    style.kind(args.output)
    check_picture(args)
    results, width, y = read(args.result), inches(args.width), names(args.y or ["objective"])
    if args.timeline:
        if len(results) > 1:
            raise UserError(f"--timeline draws one run, not {len(results)}")
        figure = timeline.timeline(results[0], width, args.title)
    elif args.page:
        figure = plot.page(results, args.log, width, args.title)
    elif args.box:
        if len(y) > 1:
            raise UserError(f"--box draws one column, not {len(y)}: {', '.join(y)}")
        runs = results if args.all else finished(results)
        figure = boxplot.box(runs, args.box, y[0], args.log, width, args.title)
    else:
        figure = plot.lines(results, args.x or "round", y, args.log, width, args.title)
    style.save(figure, args.output, args.force)
    return f"written to {args.output}"


def check_picture(args: argparse.Namespace) -> None:
    """UserError for two pictures at once, and for an option that has no effect on the picture."""
    pictures = [picture for picture in REFUSED if getattr(args, picture)]
    if len(pictures) > 1:
        raise UserError(f"--{pictures[0]} and --{pictures[1]} are two pictures: draw them one at a time")
    if not pictures and args.all:
        raise UserError("--all has no effect on curves, which show all runs: it goes with --box")
    for picture in pictures:
        for option in REFUSED[picture]:
            if getattr(args, option):
                raise UserError(f"--{option} has no effect on --{picture}: leave it out")


def names(words: list[str]) -> list[str]:
    """The names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))


def inches(width: str | None) -> float | None:
    """A width: single, double or a number."""
    from mpifed.report.style import WIDTHS

    if width is None or width in WIDTHS:
        return None if width is None else WIDTHS[width]
    try:
        return float(width)
    except ValueError:
        raise UserError(f"--width {width} is wrong: it must be single, double or a number of inches") from None
