"""/certificate of a result file: the conditions of the method's theorem, and the bounds that it proves."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import get_entry
from mpifed.core.typing import Array
from mpifed.results.columns import ColumnInfo
from mpifed.results.netcdf import GrowingFile, H5Group, require_scale, storable_attribute, storable_text, write_dataset
from mpifed.results.rounds_table import METADATA
from mpifed.results.validate import read_columns, to_scalar
from mpifed.theory.statements import RELATIONS, Bound, Certificate, Condition, Constants

CERTIFICATE: dict[str, ColumnInfo] = {
    "name": ColumnInfo("1", "Condition of the method's theorem."),
    "left": ColumnInfo("1", "Left side of the condition."),
    "relation": ColumnInfo("1", "Relation between the sides: >=, >, <=, < or =."),
    "right": ColumnInfo("1", "Right side of the condition."),
    "holds": ColumnInfo("1", "Whether the condition holds: 1 yes, 0 no, -1 it cannot be decided.", True),
    "source": ColumnInfo("1", "Where the condition stands in the paper."),
    "bound": ColumnInfo("1", "What the theorem bounds where its conditions hold."),
    "formula": ColumnInfo("1", "The bound as a formula."),
    "value": ColumnInfo("1", "The bound as a number for this study, NaN where a constant is not known."),
    "bound_source": ColumnInfo("1", "Where the bound stands in the paper."),
    "kind": ColumnInfo("1", "factor: of a round; bound: after all rounds; number: something else."),
    "column": ColumnInfo("1", "Column of /rounds that the bound is about, empty where there is none."),
    "first": ColumnInfo("1", "First round that the bound counts.", True),
}

CONDITION = dict(zip(Condition._fields, ("name", "left", "relation", "right", "holds", "source"), strict=True))
BOUND = dict(zip(Bound._fields, ("bound", "formula", "value", "bound_source", "kind", "column", "first"), strict=True))
KINDS = {"left": float, "right": float, "value": float, "holds": int, "first": int}  # columns of numbers
ANSWERS = {True: 1, False: 0, None: -1}
DECISIONS = {number: answer for answer, number in ANSWERS.items()}
TEXTS = ("theorem", "remarks", "at")
NUMBERS = Constants._fields[:-1]


def write_certificate(growing: GrowingFile, certificate: Certificate) -> None:
    """Write /certificate; its attributes are the theorem, the remarks, one a line, and the constants of the study."""
    count = len(certificate.conditions) + len(certificate.bounds)
    texts = len(repr(certificate).encode())
    # Twice the texts: HDF5 keeps texts of any length in a separate heap, which it fills piece by piece.
    growing.reserve((len(CERTIFICATE) + 8) * METADATA + 2 * texts + 64 * count)
    with growing.change_atomically():
        group = growing.file.create_group("certificate")
        about = {"theorem": certificate.theorem, "remarks": "\n".join(certificate.remarks)}
        constants = {} if certificate.constants is None else certificate.constants._asdict()
        for key, value in (about | constants).items():
            group.attrs[key] = storable_attribute(value)
        write_table(group, CONDITION, certificate.conditions, "condition")
        write_table(group, BOUND, certificate.bounds, "number")
    growing.flush()


def write_table(group: H5Group, fields: dict[str, str], rows: Sequence[Any], axis: str) -> None:
    row_axis = require_scale(group, axis, len(rows))
    for field, key in fields.items():
        values = [getattr(row, field) for row in rows]
        if field == "holds":
            values = [ANSWERS[value] for value in values]
        elif key not in KINDS:
            values = [storable_text(value) for value in values]
        write_dataset(group, key, np.array(values, KINDS.get(key, object)), (row_axis,), CERTIFICATE[key])


def read_certificate(file: H5Group, name: str) -> Certificate | None:
    """Return the certificate of the result ``name``, None where it has none. UserError where it is damaged."""
    group = get_entry(file, "certificate", name)
    if group is None:
        return None
    table = dict(read_columns(file, "certificate", name))
    about = {key: to_scalar(value) for key, value in group.attrs.items()}
    try:
        if not all(map(has_right_type, table.values(), table)) or not {*table.get("relation", ())} <= RELATIONS.keys():
            raise ValueError("a column has another type, or there is another relation")
        conditions = [Condition(*row) for row in read_rows(table, CONDITION)]
        bounds = [Bound(*row) for row in read_rows(table, BOUND)]
        theorem, remarks, at = msgspec.convert([about.get(key, "") for key in TEXTS], tuple[str, str, str])
        numbers = {key: float(about[key]) for key in NUMBERS} if NUMBERS[0] in about else None
        constants = None if numbers is None else Constants(**numbers, at=at)
    except (KeyError, ValueError, TypeError, msgspec.ValidationError):
        raise UserError(f"{name} is not a valid result: its certificate is damaged") from None
    return Certificate(theorem, conditions, bounds, remarks.splitlines(), constants)


def has_right_type(values: Array, key: str) -> bool:
    if key in CERTIFICATE and key not in KINDS:
        return values.dtype.kind == "O"
    return values.dtype.kind == "i" if KINDS.get(key, int) is int else values.dtype.kind == "f"


def read_rows(stored: dict[str, Array], fields: dict[str, str]) -> list[tuple[Any, ...]]:
    lists = {key: stored[key].tolist() for key in fields.values()}
    if "holds" in lists:
        lists["holds"] = [DECISIONS.get(value) for value in lists["holds"]]
    return list(zip(*lists.values(), strict=True))
