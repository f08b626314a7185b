"""The commands show and compare."""

from __future__ import annotations

import argparse
from typing import Any


def options(commands: Any) -> None:
    """The options of both."""
    show = commands.add_parser("show", help="summarise result files")
    show.add_argument("result", nargs="+", help="result files")
    show.add_argument("-v", "--verbose", action="store_true", help="show every setting, also those at their defaults")
    compare = commands.add_parser(
        "compare",
        help="runs in a table, mean ± sd over seeds",
        description="One row for all runs that differ in the seed alone, headed by the settings in which rows differ.",
    )
    compare.add_argument("result", nargs="+", help="result files")
    compare.add_argument(
        "--by", default="seed", metavar="KEYS", help="settings to take means over, or none (default: seed)"
    )
    compare.add_argument(
        "--columns", metavar="NAMES", help="objective,error,rounds,tct,lct,bytes … or any recorded column"
    )
    compare.add_argument("--format", default="terminal", help="terminal, markdown, latex or csv")
    compare.add_argument("--sort", metavar="COLUMN", help="a setting, from small to large, or a column, best first")
    compare.add_argument(
        "--rename", action="append", metavar="OLD=NEW", help="another name for a method, setting or column (repeatable)"
    )
    compare.add_argument("--all", action="store_true", help="count runs that did not finish too")


def show(args: argparse.Namespace) -> str:
    """The summaries of results."""
    from mpifed.report.summary import show
    from mpifed.results.result import load

    return "\n\n".join(show(load(path), args.verbose) for path in args.result)


def compare(args: argparse.Namespace, bold: bool) -> str:
    """The table; ``bold``: for a terminal that shows bold text."""
    from mpifed.report.compare import Layout, compare
    from mpifed.report.groups import read

    by = [] if args.by == "none" else names([args.by])
    columns = names([args.columns or ""]) or None
    return compare(read(args.result), Layout(by, columns, args.sort, args.all, args.format, bold, args.rename or ()))


def names(words: list[str]) -> list[str]:
    """The names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))
