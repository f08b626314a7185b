"""/certificate of a result file: the conditions of the method's theorem, and what it proves."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import entry
from mpifed.core.typing import Array
from mpifed.results.columns import Column
from mpifed.results.netcdf import Group, Growing, attribute, put, scale, text
from mpifed.results.rounds_table import METADATA
from mpifed.results.validate import columns, plain
from mpifed.theory.statements import RELATIONS, Bound, Certificate, Condition, Constants

CERTIFICATE: dict[str, Column] = {
    "name": Column("1", "Condition of the method's theorem."),
    "left": Column("1", "Left side of the condition."),
    "relation": Column("1", "Relation between the sides: >=, >, <=, < or =."),
    "right": Column("1", "Right side of the condition."),
    "holds": Column("1", "Whether the condition holds: 1 yes, 0 no, -1 it cannot be decided.", True),
    "source": Column("1", "Where the condition stands in the paper."),
    "bound": Column("1", "What the theorem bounds where its conditions hold."),
    "formula": Column("1", "The bound as a formula."),
    "value": Column("1", "The bound as a number for this study, NaN where a constant is not known."),
    "bound_source": Column("1", "Where the bound stands in the paper."),
    "kind": Column("1", "factor: of a round; bound: after all rounds; number: something else."),
    "column": Column("1", "Column of /rounds that the bound is about, empty where there is none."),
    "first": Column("1", "First round that the bound counts.", True),
}

CONDITION = dict(zip(Condition._fields, ("name", "left", "relation", "right", "holds", "source"), strict=True))
BOUND = dict(zip(Bound._fields, ("bound", "formula", "value", "bound_source", "kind", "column", "first"), strict=True))
KINDS = {"left": float, "right": float, "value": float, "holds": int, "first": int}  # columns that are no texts
ANSWERS = {True: 1, False: 0, None: -1}
HELD = {number: answer for answer, number in ANSWERS.items()}
TEXTS = ("theorem", "remarks", "at")
NUMBERS = Constants._fields[:-1]


def write_certificate(growing: Growing, certificate: Certificate) -> None:
    """Write the group; attributes hold the theorem, the remarks, one a line, and the constants of the study."""
    count = len(certificate.conditions) + len(certificate.bounds)
    texts = len(repr(certificate).encode())
    # Twice the texts: HDF5 keeps texts of any length in a heap of their own, which it fills in pieces.
    growing.reserve((len(CERTIFICATE) + 8) * METADATA + 2 * texts + 64 * count)
    with growing.renewed():
        group = growing.file.create_group("certificate")
        about = {"theorem": certificate.theorem, "remarks": "\n".join(certificate.remarks)}
        constants = {} if certificate.constants is None else certificate.constants._asdict()
        for key, value in (about | constants).items():
            group.attrs[key] = attribute(value)
        table(group, CONDITION, certificate.conditions, "condition")
        table(group, BOUND, certificate.bounds, "number")
    growing.flush()


def table(group: Group, fields: dict[str, str], rows: Sequence[Any], axis: str) -> None:
    along = scale(group, axis, len(rows))
    for field, key in fields.items():
        values = [getattr(row, field) for row in rows]
        if field == "holds":
            values = [ANSWERS[value] for value in values]
        elif key not in KINDS:
            values = [text(value) for value in values]
        put(group, key, np.array(values, KINDS.get(key, object)), (along,), CERTIFICATE[key])


def read_certificate(file: Group, name: str) -> Certificate | None:
    """The certificate of the result ``name``, None where it has none. UserError where it is not a valid one."""
    group = entry(file, "certificate", name)
    if group is None:
        return None
    found = dict(columns(file, "certificate", name))
    about = {key: plain(value) for key, value in group.attrs.items()}
    try:
        if not all(map(right_type, found.values(), found)) or not {*found.get("relation", ())} <= RELATIONS.keys():
            raise ValueError("a column has another type, or there is another relation")
        conditions = [Condition(*row) for row in rows(found, CONDITION)]
        bounds = [Bound(*row) for row in rows(found, BOUND)]
        theorem, remarks, at = msgspec.convert([about.get(key, "") for key in TEXTS], tuple[str, str, str])
        numbers = {key: float(about[key]) for key in NUMBERS} if NUMBERS[0] in about else None
        constants = None if numbers is None else Constants(**numbers, at=at)
    except (KeyError, ValueError, TypeError, msgspec.ValidationError):
        raise UserError(f"{name} is not a valid result: its certificate is damaged") from None
    return Certificate(theorem, conditions, bounds, remarks.splitlines(), constants)


def right_type(values: Array, key: str) -> bool:
    if key in CERTIFICATE and key not in KINDS:
        return values.dtype.kind == "O"
    return values.dtype.kind == "i" if KINDS.get(key, int) is int else values.dtype.kind == "f"


def rows(found: dict[str, Array], fields: dict[str, str]) -> list[tuple[Any, ...]]:
    parts = {key: found[key].tolist() for key in fields.values()}
    if "holds" in parts:
        parts["holds"] = [HELD.get(value) for value in parts["holds"]]
    return list(zip(*parts.values(), strict=True))
