"""The commands list and describe, and --version."""

import argparse
from typing import Any


def options(commands: Any) -> None:
    """The commands list and describe."""
    kinds = commands.add_parser("list", help="list what an experiment file can name")
    kinds.add_argument(
        "kind", nargs="?", help="algorithms, problems, data, partitions, selections … or matrix: algorithms × problems"
    )
    one = commands.add_parser("describe", help="formula, options and source of an algorithm, a problem …")
    one.add_argument("name")
    for command in (kinds, one):
        command.set_defaults(act=names)


def names(args: argparse.Namespace) -> str:
    """What the commands print."""
    from mpifed.cli import describe

    return describe.names(args.kind) if args.command == "list" else describe.component(args.name)


def versions() -> str:
    """Versions of mpifed, Python, the libraries and the MPI library that mpi4py finds, one line each."""
    from mpifed.mpi.library import library
    from mpifed.results import provenance

    found = provenance.versions()
    try:
        found["MPI"] = library()
    except (ImportError, RuntimeError) as error:
        found["MPI"] = f"none: {str(error).splitlines()[0]}"
    return "\n".join(f"{name:<8} {text}" for name, text in found.items())
