"""The commands list and describe, and --version: what an experiment file can name, read from the code."""

import argparse
import inspect
import re
import sys
import textwrap
import typing
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from mpifed.checking.families import KINDS as KINDS
from mpifed.checking.families import outside
from mpifed.core import plugins
from mpifed.core.component import Component, Table, parts_of
from mpifed.core.errors import UserError, unknown
from mpifed.core.toml import toml_value
from mpifed.features.asynchrony.asynchronous import Asynchronous
from mpifed.features.attack.attacks import Attack
from mpifed.features.compression.compress import Compress
from mpifed.features.masks.masks import Masks
from mpifed.features.matching import Matrix, matrix
from mpifed.features.robust.means import RobustMean
from mpifed.features.settings import Objective
from mpifed.features.simulated_time.system import System
from mpifed.graphs.graph import Graph
from mpifed.mpi.library import library
from mpifed.report.layout import aligned
from mpifed.results import provenance

# tables with a docstring worth showing
SHOWN: list[type[Table]] = [Objective, System, Asynchronous, Masks, Compress, Graph, Attack]
TABLES = {table.__name__.lower(): table for table in SHOWN} | {"robust": RobustMean}
WIDTH = 100  # characters of a line
MATRIX = "matrix"  # the kind that stands for algorithms × problems


def described(args: argparse.Namespace) -> str:
    return names(args.kind) if args.command == "list" else component(args.name)


def versions(_: object = None) -> str:
    """Versions of mpifed, Python, the libraries and the MPI library that mpi4py finds, one line each."""
    found = provenance.versions()
    try:
        found["MPI"] = library()
    except (ImportError, RuntimeError) as error:
        found["MPI"] = f"none: {str(error).splitlines()[0]}"
    return "\n".join(f"{name:<8} {text}" for name, text in found.items())


def names(kind: str | None = None) -> str:
    if kind == MATRIX:
        return combinations()
    if kind is not None and kind not in KINDS:
        unknown("kind", kind, [*KINDS, MATRIX])
    blocks = []
    for title in [kind] if kind else KINDS:
        lines = [f"  {name:<20} {summary(KINDS[title], name)}" for name in KINDS[title].names()]
        blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(blocks)


def combinations() -> str:
    found = matrix()
    notes = [f"{mark} {reason}" for mark, reason in found.notes.items()]
    head = ["algorithms × problems, with default options:", ""]
    for part in screens(found):
        rows = [["", *found.problems[part]], *([name, *cells[part]] for name, cells in found.cells.items())]
        head += [*aligned(rows, " "), ""]
    options = ["", "with other options:", *wrapped(found.options, "    ", "  ")]
    return "\n".join([*head, *wrapped(notes, "  "), *options])


def screens(found: Matrix) -> Iterator[slice]:
    """The problems of each table, whose columns have room in a line."""
    room = WIDTH - max(map(len, found.cells))
    columns = zip(found.problems, *found.cells.values(), strict=True)
    ends = [0, *accumulate(1 + max(map(len, column)) for column in columns)]
    first = 0
    while first < len(found.problems):
        last = max(first + 1, bisect_right(ends, ends[first] + room) - 1)
        yield slice(first, last)
        first = last


def wrapped(texts: list[str], indent: str, first: str = "") -> list[str]:
    """Texts in lines of at most WIDTH characters."""
    return [
        line for text in texts for line in textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent)
    ]


def summary(family: type[Component], name: str) -> str:
    """The first sentence about a member; for a plugin also its package, or why it cannot be used."""
    try:
        cls = family.member(name, family.kind)
    except UserError as error:
        return f"({error})"
    return sentence(cls) + ("" if name in family.choices else f"  ({plugins.installed(family.kind)[name]})")


def component(name: str) -> str:
    if name in TABLES:
        return describe("table", name, TABLES[name])
    found = [family for family in KINDS.values() if name in family.names()] or [outside(name)]
    return "\n\n".join(describe(family.kind, name, family.member(name, "name")) for family in found)


def describe(kind: str, name: str, cls: type[Table]) -> str:
    """Docstring and options, with defaults and meaning, of the class called ``name``."""
    file = f"{cls.__module__.replace('.', '/')}.py" if cls.__module__.startswith("mpifed.") else inspect.getfile(cls)
    source = paper(cls)
    lines = [f"{name}  ({kind}: {file})", "", *([] if source is None else [source.citation, source.link, ""])]
    lines.append(inspect.getdoc(cls) or "")
    rows = [option(field) for field in msgspec.structs.fields(cls)]
    if rows:
        lines += ["", "options:", *(f"  {line}" for line in aligned(rows))]
    return "\n".join(lines)


class Paper(NamedTuple):
    """A citation, the number in it, such as arXiv:2205.01438, and the link that this number stands for."""

    citation: str
    number: str
    link: str


def paper(cls: type) -> Paper | None:
    """The paper that the docstring of a class's file begins with; None where it has no arXiv:NUMBER or doi:NUMBER."""
    citation = " ".join((sys.modules[cls.__module__].__doc__ or "").split("\n\n")[0].split())
    found = re.search(r"(arXiv|doi):([\w./-]*\w)", citation)
    if found is None:
        return None
    sites = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}
    return Paper(citation, found[0], sites[found[1]] + found[2])


def option(field: Any) -> tuple[str, str, str]:
    default = "(required)"
    if not field.required:
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        default = "-" if value is None else toml_value(msgspec.to_builtins(value))
    kind = field.type
    meaning = bounds = ""
    # Annotated may be around X | None and inside of it, each with a part of what there is to say; from the outside in
    while typing.get_origin(kind) is typing.Annotated or len(typing.get_args(kind)) == 2:
        inner, extra = typing.get_args(kind)
        if isinstance(extra, msgspec.Meta):
            meaning = extra.description or meaning
            limits = {">=": extra.ge, ">": extra.gt, "<=": extra.le, "<": extra.lt}
            bounds = ", ".join(f"{sign} {limit}" for sign, limit in limits.items() if limit is not None)
        elif extra is not type(None):
            break
        kind = inner
    if typing.get_origin(kind) is typing.Literal:
        bounds = " | ".join(map(toml_value, typing.get_args(kind)))
    family, _, _ = parts_of(kind)
    if family is not None and issubclass(family, Component) and family.choices:
        bounds = " | ".join(family.choices)
    return field.encode_name, default, meaning + (f"  [{bounds}]" if bounds else "")


def sentence(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").split(":  ")[0]
