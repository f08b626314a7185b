"""Roles of the columns of a table: label, client, test, time, event, weight, offset, or feature."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.toml import as_list, toml_value
from mpifed.data import sample_columns
from mpifed.data.tables.table import DataTable

WORDS = {
    "target": "labels",
    "client": "clients",
    "test": "test rows",
    "time": "times",
    "event": "events",
    **sample_columns.COLUMNS,
    "client_weights": "weights of clients",
}


class Roles(NamedTuple):
    """Numbers of the columns of a table by role."""

    special: dict[str, int]  # columns that are no features, by role, a key of WORDS
    features: list[int]
    categories: list[int]  # features that the user calls categories


def find_roles(options: Any, table: DataTable) -> Roles:
    """Return the role of each column by the options of [data]; UserError for missing columns, or with two roles."""
    keys = {role: getattr(options, role) for role in WORDS} | {"test": options.test_column()}
    special = {role: table.find(role, key) for role, key in keys.items() if key is not None}
    if (options.time is None) != (options.event is None):
        missing, present = ("event", "time") if options.event is None else ("time", "event")
        raise UserError(
            f"data.{present} needs data.{missing}: the label of a person is a time, and whether the event came then"
        )
    if options.time is not None and options.target is not None:
        raise UserError("data.target does not go with data.time and data.event, which are the label: leave it out")
    if options.time is None and options.target is None:
        special["target"] = table.last()
    if options.weight is not None and options.frequency is not None:
        raise UserError("data.weight and data.frequency are both weights of samples: give one of them")
    check_different(options, table, special)
    ignored = [table.find("ignore", key) for key in as_list(options.ignore)]
    check_apart("ignore", ignored, table, special, "data.target must be another one" if options.target is None else "")
    features = feature_columns(options, table, special, ignored)
    categories = [table.find("categories", key) for key in as_list(options.categories)]
    allowed = set(features)
    for k in categories:
        if k not in allowed:
            raise UserError(f"data.categories has {table.cite(k)} of {table.source}, which is no feature: take it out")
    return Roles({role: special[role] for role in WORDS if role in special}, features, categories)


def check_apart(key: str, columns: Sequence[int], table: DataTable, special: dict[str, int], advice: str = "") -> None:
    """Raise UserError where data.``key`` names a column that is no feature, with ``advice`` if it is the target."""
    for role, k in special.items():
        if k in columns:
            right = advice if advice and role == "target" else "take it out"
            raise UserError(
                f"data.{key} has {table.cite(k)} of {table.source}, which is that of the {WORDS[role]}: {right}"
            )


def check_different(options: Any, table: DataTable, special: dict[str, int]) -> None:
    """Raise UserError where a column has two roles; clients and test rows may share one (train_0, test_0)."""
    for role, k in special.items():
        for other in WORDS:
            if other == role or special.get(other) != k or {role, other} == {"client", "test"}:
                continue
            first, second = sorted((role, other), key=lambda name: name in ("target", "time"))
            shown = toml_value(getattr(options, first))
            last = options.target is None and second == "target"
            right = "data.target must be another one" if last else "they must be two"
            raise UserError(
                f"data.{first} = {shown} is the column of the {WORDS[second]} of {table.source}, too: {right}"
            )


def feature_columns(options: Any, table: DataTable, special: dict[str, int], ignored: Sequence[int]) -> list[int]:
    """Return the columns of features: those listed, in that order, or all without another role."""
    if options.features is None:
        # The column by which two tables are matched identifies rows, and is no feature unless it is listed.
        taken = {*special.values(), *ignored, *table.row_names, *([table.positions[table.key]] if table.key else [])}
        return [k for k in range(len(table.names)) if k not in taken]
    features = [table.find("features", key) for key in as_list(options.features)]
    check_apart("features", features, table, special)
    if ignored:
        raise UserError(
            "data.ignore and data.features contradict each other: one of them says which columns are features"
        )
    if len(set(features)) < len(features):
        raise UserError(f"data.features names a column twice: {', '.join(map(toml_value, as_list(options.features)))}")
    return features
