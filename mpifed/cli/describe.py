"""The commands list and describe, and --version: the names that an experiment file can use, read from the code."""

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
from mpifed.checking.families import external_family
from mpifed.core import plugins
from mpifed.core.component import Component, StudyTable, analyse_type
from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.toml import toml_value
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.attack.attacks import Attack
from mpifed.features.compression.compress import Compress
from mpifed.features.masks.masks import Masks
from mpifed.features.matching import CompatibilityMatrix, build_matrix
from mpifed.features.privacy.mechanisms import Mechanism
from mpifed.features.privacy.private_means import PrivateMeans
from mpifed.features.robust.means import RobustMean
from mpifed.features.settings import Objective
from mpifed.features.simulated_time.system import System
from mpifed.graphs.graph import Graph
from mpifed.mpi.world import library_version
from mpifed.report.tables import align_rows
from mpifed.results import provenance

# tables whose docstrings describe shows
SHOWN: list[type[StudyTable]] = [Objective, System, Asynchronous, Masks, Compress, Graph, Attack]
TABLES = {table.__name__.lower(): table for table in SHOWN} | {"robust": RobustMean, "privacy": PrivateMeans}
WIDTH = 100  # characters of a line
MATRIX = "matrix"  # list matrix: algorithms × problems


def list_or_describe(args: argparse.Namespace) -> str:
    return list_names(args.kind) if args.command == "list" else describe_component(args.name)


def versions(_: object = None) -> str:
    """Return the versions of mpifed, Python, the libraries and the MPI library that mpi4py finds, one a line."""
    lines = provenance.library_versions()
    try:
        lines["MPI"] = library_version()
    except (ImportError, RuntimeError) as error:
        lines["MPI"] = f"none: {str(error).splitlines()[0]}"
    return "\n".join(f"{name:<8} {text}" for name, text in lines.items())


def list_names(family: str | None = None) -> str:
    """List the members of one family, or of all, with a line about each."""
    if family == MATRIX:
        return list_combinations()
    if family is not None and family not in KINDS:
        raise_unknown("kind", family, [*KINDS, MATRIX])
    blocks = []
    for title in [family] if family else KINDS:
        lines = [f"  {name:<20} {summary(KINDS[title], name)}" for name in KINDS[title].names()]
        blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(blocks)


def list_combinations() -> str:
    """List which algorithms go with which problems."""
    pairs = build_matrix()
    notes = [f"{mark} {reason}" for mark, reason in pairs.notes.items()]
    head = ["algorithms × problems, with default options:", ""]
    for part in screens(pairs):
        rows = [["", *pairs.problems[part]], *([name, *cells[part]] for name, cells in pairs.cells.items())]
        head += [*align_rows(rows, " "), ""]
    options = ["", "with other options:", *wrap(pairs.options, "    ", "  ")]
    return "\n".join([*head, *wrap(notes, "  "), *options])


def screens(pairs: CompatibilityMatrix) -> Iterator[slice]:
    """Yield the problems of each table whose columns fit into a line."""
    room = WIDTH - max(map(len, pairs.cells))
    columns = zip(pairs.problems, *pairs.cells.values(), strict=True)
    ends = [0, *accumulate(1 + max(map(len, column)) for column in columns)]
    first = 0
    while first < len(pairs.problems):
        last = max(first + 1, bisect_right(ends, ends[first] + room) - 1)
        yield slice(first, last)
        first = last


def wrap(texts: list[str], indent: str, first: str = "") -> list[str]:
    """Wrap texts to lines of at most WIDTH characters."""
    return [
        line for text in texts for line in textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent)
    ]


def summary(family: type[Component], name: str) -> str:
    """Return the first sentence about a member; for a plugin also its package, or why it cannot be used."""
    try:
        cls = family.member(name, family.kind)
    except UserError as error:
        return f"({error})"
    return first_sentence(cls) + (
        "" if name in family.choices else f"  ({plugins.find_entry_points(family.kind)[name]})"
    )


def describe_component(name: str) -> str:
    if name in TABLES:
        return describe("table", name, TABLES[name])
    known: tuple[type[Component], ...] = (*KINDS.values(), Mechanism)
    families = [family for family in known if name in family.names()] or [external_family(name)]
    return "\n\n".join(describe(family.kind, name, family.member(name, "name")) for family in families)


def describe(category: str, name: str, cls: type[StudyTable]) -> str:
    """Return docstring and options, with defaults and meaning, of the class called ``name``."""
    file = f"{cls.__module__.replace('.', '/')}.py" if cls.__module__.startswith("mpifed.") else inspect.getfile(cls)
    source = find_paper(cls)
    lines = [f"{name}  ({category}: {file})", "", *([] if source is None else [source.citation, source.link, ""])]
    lines.append(inspect.getdoc(cls) or "")
    rows = [option_row(field) for field in msgspec.structs.fields(cls)]
    if rows:
        lines += ["", "options:", *(f"  {line}" for line in align_rows(rows))]
    return "\n".join(lines)


class Paper(NamedTuple):
    """A citation, its number, such as arXiv:2205.01438, and the link for this number."""

    citation: str
    number: str
    link: str


def find_paper(cls: type) -> Paper | None:
    """Return the paper cited first in the docstring of a class's file; None without arXiv:NUMBER or doi:NUMBER."""
    citation = " ".join((sys.modules[cls.__module__].__doc__ or "").split("\n\n")[0].split())
    match = re.search(r"(arXiv|doi):([\w./-]*\w)", citation)
    if match is None:
        return None
    sites = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}
    return Paper(citation, match[0], sites[match[1]] + match[2])


def option_row(field: Any) -> tuple[str, str, str]:
    """Return name, default and meaning of an option, with its bounds or choices."""
    default = "(required)"
    if not field.required:
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        default = "-" if value is None else toml_value(msgspec.to_builtins(value))
    type_ = field.type
    meaning = bounds = ""
    # Annotated may stand around X | None and inside it, each with a part of the description; from the outside in
    while typing.get_origin(type_) is typing.Annotated or len(typing.get_args(type_)) == 2:
        inner, *extras = typing.get_args(type_)
        metas = [extra for extra in extras if isinstance(extra, msgspec.Meta)]
        for extra in metas:
            meaning = extra.description or meaning
            limits = {">=": extra.ge, ">": extra.gt, "<=": extra.le, "<": extra.lt}
            bounds = ", ".join(f"{sign} {limit}" for sign, limit in limits.items() if limit is not None) or bounds
        if not metas and extras[0] is not type(None) and typing.get_origin(extras[0]) is not typing.Annotated:
            break
        type_ = inner
    if typing.get_origin(type_) is typing.Literal:
        bounds = " | ".join(map(toml_value, typing.get_args(type_)))
    family, _, types = analyse_type(type_)
    if family is not None and issubclass(family, Component) and family.choices:
        bounds = f"> 0, or a rule: mpifed list {family.kind}" if float in types else " | ".join(family.choices)
    return field.encode_name, default, meaning + (f"  [{bounds}]" if bounds else "")


def first_sentence(cls: type) -> str:
    """Return the first sentence of the docstring of a class."""
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").split(":  ")[0]
