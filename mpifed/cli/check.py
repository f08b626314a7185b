"""The command check."""

import argparse

from mpifed.checking.check import check as checked
from mpifed.checking.families import members
from mpifed.cli.main import Mistakes
from mpifed.cli.run import study


def check(args: argparse.Namespace) -> str:
    reports = [checked(cls, {"name": args.name}, study(args.study)) for cls in members(args.name)]
    text = "\n\n".join(map(str, reports))
    if not all(reports):
        raise Mistakes(text)
    return text
