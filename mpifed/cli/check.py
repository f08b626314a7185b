"""The command check."""

import argparse

from mpifed.checking.check import check as checked
from mpifed.checking.families import classes_named
from mpifed.cli.main import Mistakes
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError


def check(args: argparse.Namespace) -> str:
    reports, refused = [], list[UserError]()
    for cls in classes_named(args.name):
        try:
            reports.append(checked(cls, {"name": args.name}, read_study(args.study)))
        except UserError as error:  # gd is a method, and a solver that needs an option
            refused.append(error)
    if not reports:
        raise refused[0]
    text = "\n\n".join([*map(str, reports), *(f"not checked: {error}" for error in refused)])
    if not all(reports):
        raise Mistakes(text)
    return text
