"""The command data: download a data set, or describe one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.data.base import Data


def options(commands: Any) -> None:
    """The command data."""
    data = commands.add_parser("data", help="download a data set (get) or describe a data file (info)")
    data.add_argument("action", choices=("get", "info"))
    data.add_argument("name", help="get: a data set; info: a data file or data set")
    data.add_argument("--to", default=".", help="folder to download into (default: the current one)")


def data(args: argparse.Namespace) -> str:
    """Download a data set (``get``), or describe a data file or data set (``info``)."""
    from mpifed.data import download, info

    name = args.name
    if args.action == "get":
        return "written to " + ", ".join(map(str, download.fetch(name, Path(args.to))))
    family = Data
    if (name in family.names() and name != "file") or plugins.FILE.fullmatch(name):
        source = family.build(name, "data")
    elif Path(name).suffix:
        source = family.build({"name": "file", "path": name}, "data")
    else:
        choices = ", ".join(family.names())
        raise UserError(f"{name!r} is neither a data file nor a data set; the data sets are {choices}")
    return info.describe(source.load(0, "float64"))
