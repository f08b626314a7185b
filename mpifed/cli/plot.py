"""The command plot."""

import argparse
from typing import Any

from mpifed.cli.compare import names
from mpifed.core.errors import UserError

REFUSED = {  # options without effect
    "timeline": ("x", "y", "log", "all", "band", "rename"),
    "page": ("x", "y", "all"),
    "box": ("x", "band"),
    "html": ("all", "band", "width"),
}


def options(commands: Any) -> None:
    """The command plot."""
    command = commands.add_parser(
        "plot",
        help="pictures of runs",
        description="Curves of recorded columns; runs that differ in the seed alone are one curve with a band.",
    )
    command.add_argument("result", nargs="+", help="result files")
    command.add_argument(
        "--x", help="round (default), exchanges, bytes, bytes_up, seconds, simulated_seconds or any column"
    )
    command.add_argument(
        "--y",
        action="append",
        help="columns, one panel each; error: f − f* (default: objective; error where f differs between seeds)",
    )
    command.add_argument("--log", help="logarithmic axes: x, y, xy or none (default: y where values span two decades)")
    command.add_argument("--box", metavar="KEY", help="boxes of the final value of y over a setting: algorithm.k0")
    command.add_argument("--all", action="store_true", help="boxes of runs that did not finish too")
    command.add_argument("--timeline", action="store_true", help="where the time of one run went, by round and by rank")
    command.add_argument("--page", action="store_true", help="objective, error and accuracy by rounds, bytes, seconds")
    command.add_argument(
        "--band", help="around means over seeds: none, sd or minmax (default: minmax up to three curves, else none)"
    )
    command.add_argument(
        "--rename",
        action="append",
        metavar="OLD=NEW",
        help="another name for a method, setting, column or curve: fedgia=ours (repeatable)",
    )
    command.add_argument("--html", action="store_true", help="a page to explore the curves of all runs in a browser")
    command.add_argument("--width", metavar="INCHES", help="single (3.4), double (7) or inches")
    command.add_argument("--title", help="title of the picture")
    command.add_argument(
        "-o",
        "--output",
        help="picture: .png, .pdf, .svg, or .html, a page to explore (default: figure.png; with --html page.html)",
    )
    command.add_argument("--force", action="store_true", help="overwrite the picture")
    command.set_defaults(act=plot)


def plot(args: argparse.Namespace) -> str:
    """Draw the picture; the line that says where it is."""
    from mpifed.report import boxplot, interactive, plot, style, timeline
    from mpifed.report.groups import read

    output = named(args)
    check_picture(args)
    results = read(args.result)
    width = style.inches(args.width, "--width")
    y = names(args.y or [])
    if args.timeline:
        if len(results) > 1:
            raise UserError(f"--timeline draws one run, not {len(results)}")
        figure = timeline.timeline(results[0], width, args.title)
    else:
        wishes = style.Wishes(log=args.log, width=width, title=args.title, band=args.band, rename=args.rename or ())
        if args.html:
            made = interactive.interactive(results, args.x or "round", y, **wishes)
            return f"written to {output} ({made.save(output, args.force)})"
        if args.page:
            figure = plot.page(results, **wishes)
        elif args.box:
            if len(y) > 1:
                raise UserError(f"--box draws one column, not {len(y)}: {', '.join(y)}")
            runs = [result for result in results if args.all or result.status == "finished"]
            figure = boxplot.box(runs, args.box, y[0] if y else None, **wishes)
        else:
            figure = plot.lines(results, args.x or "round", y, **wishes)
    style.save(figure, output, args.force)
    return f"written to {output}"


def named(args: argparse.Namespace) -> str:
    """The name of the picture; one that ends in .html asks for the page. UserError for an unknown extension."""
    from mpifed.report import interactive, style

    output = str(args.output or ("page.html" if args.html else "figure.png"))
    page = output.lower().endswith(interactive.ENDINGS)
    if args.html and not page:
        raise UserError(f"{output} does not name a page: with --html it must end in .html")
    if not page:
        style.kind(output)
    other = next((picture for picture in ("timeline", "page", "box") if getattr(args, picture)), None)
    if page and other and not args.html:
        raise UserError(f"--{other} draws no page: {output} must end in {', '.join(style.TYPES)}")
    args.html = page
    return output


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
