"""The commands show and compare."""

import argparse
import sys
from typing import Any


def options(commands: Any) -> None:
    """The options of both."""
    one = commands.add_parser("show", help="summarise result files")
    one.add_argument("result", nargs="+", help="result files")
    one.add_argument("-v", "--verbose", action="store_true", help="show every setting, also those at their defaults")
    one.set_defaults(act=show)
    table = commands.add_parser(
        "compare",
        help="runs in a table, mean ± sd over seeds",
        description="One row for all runs that differ in the seed alone, headed by the settings in which rows differ.",
    )
    table.add_argument("result", nargs="+", help="result files")
    table.add_argument(
        "--by", default="seed", metavar="KEYS", help="settings to take means over, or none (default: seed)"
    )
    table.add_argument(
        "--columns", metavar="NAMES", help="objective,error,rounds,tct,lct,bytes … or any recorded column"
    )
    table.add_argument("--format", default="terminal", help="terminal, markdown, latex or csv")
    table.add_argument("--sort", metavar="COLUMN", help="a setting, from small to large, or a column, best first")
    table.add_argument(
        "--rename", action="append", metavar="OLD=NEW", help="another name for a method, setting or column (repeatable)"
    )
    table.add_argument("--all", action="store_true", help="count runs that did not finish too")
    table.set_defaults(act=compare)


def show(args: argparse.Namespace) -> str:
    """The summaries of results."""
    from mpifed.report.summary import show
    from mpifed.results.result import load

    return "\n\n".join(show(load(path), args.verbose) for path in args.result)


def compare(args: argparse.Namespace) -> str:
    """The table, with bold numbers where a terminal shows it."""
    from mpifed.report.compare import Layout, compare
    from mpifed.report.groups import read

    by = [] if args.by == "none" else names([args.by])
    columns = names([args.columns or ""]) or None
    bold = sys.stdout.isatty()
    return compare(read(args.result), Layout(by, columns, args.sort, args.all, args.format, bold, args.rename or ()))


def names(words: list[str]) -> list[str]:
    """The names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))
