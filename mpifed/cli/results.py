"""The commands show, compare and plot."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import UserError, errors_about
from mpifed.features.stop import StopRules
from mpifed.report import boxplot, clients, interactive, profile, style, summary, timeline
from mpifed.report import compare as tables
from mpifed.report import plot as curves
from mpifed.report.compare import TableOptions
from mpifed.report.settings import left_out_lines, load_results
from mpifed.results.result import RunRecord, load
from mpifed.sweeps.measure import parse_measure


@np.errstate(all="ignore")  # numbers of a file may be of any size
def show(args: argparse.Namespace) -> str:
    return "\n\n".join(summary.show(load(path), args.verbose) for path in args.result)


@np.errstate(all="ignore")  # numbers of a file may be of any size
def compare(args: argparse.Namespace) -> str:
    by = [] if args.by == "none" else split_names([args.by])
    columns = split_names([args.columns or ""]) or None
    bold = sys.stdout.isatty()
    layout = TableOptions(by, columns, args.sort, args.all, args.format, bold, args.at, args.rename)
    results = load_results(args.result)
    if args.clients:
        unused = next((name for name in ("sort", "test") if getattr(args, name)), "at" if args.at != "end" else None)
        if unused:
            raise UserError(f"--{unused} has no effect on --clients: leave it out")
        return clients.compare_clients(results, layout)
    text = tables.compare(results, layout)
    return text if args.test is None else f"{text}\n\n{tables.compare_pairs(results, args.test, layout)}"


def split_names(words: list[str]) -> list[str]:
    """Return the names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))


REFUSED = {  # picture -> options without effect on it
    "timeline": ("x", "y", "log", "all", "band", "rename"),
    "availability": ("x", "y", "log", "all", "band", "rename"),
    "page": ("x", "y"),
    "box": ("x", "band"),
    "html": ("band", "width"),
    "clients": ("x", "log", "band"),
    "profile": ("x", "y", "log", "all"),
}


@np.errstate(all="ignore")  # numbers of a file may be of any size
def plot(args: argparse.Namespace) -> str:
    output = picture_name(args)
    check_picture(args)
    results = load_results(args.result)
    width = style.parse_width(args.width, "--width")
    of_one = next((name for name in ("timeline", "availability") if getattr(args, name)), None)
    shown = args.all or len(results) == 1
    remarks = "".join(f"{line}\n" for line in left_out_lines(results, shown or bool(of_one or args.profile)))
    y = split_names(args.y)
    if of_one:
        if len(results) > 1:
            raise UserError(f"--{of_one} draws one run, not {len(results)}")
        figure = getattr(timeline, f"plot_{of_one}")(results[0], width, args.title)
    else:
        options = style.PictureOptions(
            log=args.log, width=width, title=args.title, band=args.band, rename=args.rename, everything=args.all
        )
        if args.html:
            page = interactive.make_page(results, args.x or "round", y, **options)
            return f"{remarks}written to {output} ({page.save(output, args.force)})"
        if args.page:
            figure = curves.plot_page(results, **options)
        elif args.clients:
            figure = clients.plot_clients(results, y, **options)
            layout = TableOptions(columns=y or None, everything=shown, rename=args.rename)
            remarks = f"{clients.compare_clients(results, layout)}\n"
        elif args.profile:
            figure = draw_profile(results, args.profile, options)
        elif args.box:
            if len(y) > 1:
                raise UserError(f"--box draws one column, not {len(y)}: {', '.join(y)}")
            figure = boxplot.plot_boxes(results, args.box, y[0] if y else None, **options)
        else:
            figure = curves.plot_lines(results, args.x or "round", y, **options)
    style.save(figure, output, args.force)
    return f"{remarks}written to {output}"


def draw_profile(results: Sequence[RunRecord], text: str, options: style.PictureOptions) -> Any:
    """Draw the performance profile of a measure. UserError where it is none, and for runs that cannot be compared."""
    measures = []
    for run in results:
        with errors_about(run.path or ""):
            stop = StopRules.build(run.config.get("stop", {}), "stop")
        measures.append(parse_measure(text, stop, "--profile"))
    values = [measure.score(run).value for measure, run in zip(measures, results, strict=True)]
    profiles = profile.collect_costs(results, values, options.get("rename") or ())
    return profile.plot_profile(profiles, text.partition(" to ")[0], **options)


def picture_name(args: argparse.Namespace) -> str:
    """Return the name of the picture, and set ``args.html`` if it ends in .html. UserError for an unknown extension."""
    output = str(args.output or ("page.html" if args.html else "figure.png"))
    page = output.lower().endswith(interactive.ENDINGS)
    if args.html and not page:
        raise UserError(f"{output} does not name a page: with --html it must end in .html")
    pictures = ("timeline", "availability", "page", "box", "clients", "profile")
    other = next((picture for picture in pictures if getattr(args, picture)), None)
    if not page:
        style.picture_extension(output, "" if other else f", or {interactive.ENDINGS[0]} for a page")
    if page and other and not args.html:
        raise UserError(f"--{other} draws no page: {output} must end in {', '.join(style.TYPES)}")
    args.html = page
    return output


def check_picture(args: argparse.Namespace) -> None:
    """Raise UserError for two pictures at once, and for an option that has no effect on the picture."""
    pictures = [picture for picture in REFUSED if getattr(args, picture)]
    if len(pictures) > 1:
        raise UserError(f"--{pictures[0]} and --{pictures[1]} are two pictures: draw them one at a time")
    for picture in pictures:
        for option in REFUSED[picture]:
            if getattr(args, option):
                raise UserError(f"--{option} has no effect on --{picture}: leave it out")
