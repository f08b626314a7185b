"""The command plot."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.cli.compare import names
from mpifed.core.errors import UserError, concerning
from mpifed.features.stop import Stop
from mpifed.report import boxplot, client_curves, interactive, profile, style, timeline
from mpifed.report import plot as curves
from mpifed.report.by_client import by_client
from mpifed.report.compare import Layout
from mpifed.report.settings import left_out, read
from mpifed.results.result import Result
from mpifed.sweeps.measure import parsed

REFUSED = {  # options without effect
    "timeline": ("x", "y", "log", "all", "band", "rename"),
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
    results = read(args.result)
    width = style.inches(args.width, "--width")
    shown = args.all or len(results) == 1
    told = "".join(f"{line}\n" for line in left_out(results, shown or bool(args.timeline or args.profile)))
    y = names(args.y)
    if args.timeline:
        if len(results) > 1:
            raise UserError(f"--timeline draws one run, not {len(results)}")
        figure = timeline.timeline(results[0], width, args.title)
    else:
        wishes = style.Wishes(
            log=args.log, width=width, title=args.title, band=args.band, rename=args.rename, everything=args.all
        )
        if args.html:
            made = interactive.interactive(results, args.x or "round", y, **wishes)
            return f"{told}written to {output} ({made.save(output, args.force)})"
        if args.page:
            figure = curves.page(results, **wishes)
        elif args.clients:
            figure = client_curves.clients(results, y, **wishes)
            told = f"{by_client(results, Layout(columns=y or None, everything=shown, rename=args.rename))}\n"
        elif args.profile:
            figure = profiled(results, args.profile, wishes)
        elif args.box:
            if len(y) > 1:
                raise UserError(f"--box draws one column, not {len(y)}: {', '.join(y)}")
            figure = boxplot.box(results, args.box, y[0] if y else None, **wishes)
        else:
            figure = curves.lines(results, args.x or "round", y, **wishes)
    style.save(figure, output, args.force)
    return f"{told}written to {output}"


def profiled(results: Sequence[Result], text: str, wishes: style.Wishes) -> Any:
    """The performance profile of a measure. UserError where it is none, and for runs that cannot be compared."""
    measures = []
    for run in results:
        with concerning(run.path or ""):
            stop = Stop.build(run.config.get("stop", {}), "stop")
        measures.append(parsed(text, stop, "--profile"))
    values = [measure.score(run).value for measure, run in zip(measures, results, strict=True)]
    found = profile.collected(results, values, wishes.get("rename") or ())
    return profile.draw(found, text.partition(" to ")[0], **wishes)


def picture_name(args: argparse.Namespace) -> str:
    """The name of the picture; one that ends in .html asks for the page. UserError for an unknown extension."""
    output = str(args.output or ("page.html" if args.html else "figure.png"))
    page = output.lower().endswith(interactive.ENDINGS)
    if args.html and not page:
        raise UserError(f"{output} does not name a page: with --html it must end in .html")
    pictures = ("timeline", "page", "box", "clients", "profile")
    other = next((picture for picture in pictures if getattr(args, picture)), None)
    if not page:
        style.kind(output, "" if other else f", or {interactive.ENDINGS[0]} for a page")
    if page and other and not args.html:
        raise UserError(f"--{other} draws no page: {output} must end in {', '.join(style.TYPES)}")
    args.html = page
    return output


def check_picture(args: argparse.Namespace) -> None:
    """UserError for two pictures at once, and for an option that has no effect on the picture."""
    pictures = [picture for picture in REFUSED if getattr(args, picture)]
    if len(pictures) > 1:
        raise UserError(f"--{pictures[0]} and --{pictures[1]} are two pictures: draw them one at a time")
    for picture in pictures:
        for option in REFUSED[picture]:
            if getattr(args, option):
                raise UserError(f"--{option} has no effect on --{picture}: leave it out")
