"""The commands show and compare."""

import argparse
import sys

import numpy as np

from mpifed.core.errors import UserError
from mpifed.report import compare as tables
from mpifed.report import summary
from mpifed.report.clients import compare_clients
from mpifed.report.compare import TableOptions
from mpifed.report.settings import load_results
from mpifed.results.result import load


@np.errstate(all="ignore")  # numbers of a file may be of any size
def show(args: argparse.Namespace) -> str:
    return "\n\n".join(summary.show(load(path), args.verbose) for path in args.result)


@np.errstate(all="ignore")  # numbers of a file may be of any size
def compare(args: argparse.Namespace) -> str:
    by = [] if args.by == "none" else split_names([args.by])
    columns = split_names([args.columns or ""]) or None
    bold = sys.stdout.isatty()
    layout = TableOptions(by, columns, args.sort, args.all, args.format, bold, args.rename)
    results = load_results(args.result)
    if args.clients:
        unused = next((name for name in ("sort", "test") if getattr(args, name)), None)
        if unused:
            raise UserError(f"--{unused} has no effect on --clients: leave it out")
        return compare_clients(results, layout)
    text = tables.compare(results, layout)
    return text if args.test is None else f"{text}\n\n{tables.compare_pairs(results, args.test, layout)}"


def split_names(words: list[str]) -> list[str]:
    """Return the names in comma-separated lists, each once."""
    return list(dict.fromkeys(name.strip() for word in words for name in word.split(",") if name.strip()))
