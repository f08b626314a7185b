"""The commands show and compare."""

import argparse
import sys

import numpy as np

from mpifed.core.errors import UserError
from mpifed.report import compare as tables
from mpifed.report import summary
from mpifed.report.by_client import by_client
from mpifed.report.compare import Layout
from mpifed.report.settings import read
from mpifed.results.result import load


@np.errstate(all="ignore")  # numbers of a file may be of any size
def show(args: argparse.Namespace) -> str:
    return "\n\n".join(summary.show(load(path), args.verbose) for path in args.result)


@np.errstate(all="ignore")  # numbers of a file may be of any size
def compare(args: argparse.Namespace) -> str:
    by = [] if args.by == "none" else names([args.by])
    columns = names([args.columns or ""]) or None
    bold = sys.stdout.isatty()
    layout = Layout(by, columns, args.sort, args.all, args.format, bold, args.rename)
    results = read(args.result)
    if args.clients:
        wrong = next((name for name in ("sort", "test") if getattr(args, name)), None)
        if wrong:
            raise UserError(f"--{wrong} has no effect on --clients: leave it out")
        return by_client(results, layout)
    text = tables.compare(results, layout)
    return text if args.test is None else f"{text}\n\n{tables.pairs(results, args.test, layout)}"


def names(words: list[str]) -> list[str]:
    """The names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))
