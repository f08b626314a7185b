"""Which column of a table is what: label, client, test, time, event, weight, offset, or a feature."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.toml import listed, toml_value
from mpifed.data import sample_columns
from mpifed.data.tables.table import Table

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
    """Numbers of columns."""

    special: dict[str, int]  # those that are no features, by what they are, the keys of WORDS
    features: list[int]
    categories: list[int]  # those of the features that the user calls categories


def roles_of(options: Any, table: Table) -> Roles:
    """What the options of [data] call each column; UserError for columns that are not there, or are two things."""
    given = {key: getattr(options, key) for key in WORDS} | {"test": options.test_column()}
    found = {key: table.find(key, value) for key, value in given.items() if value is not None}
    if (options.time is None) != (options.event is None):
        lacking, there = ("event", "time") if options.event is None else ("time", "event")
        raise UserError(
            f"data.{there} needs data.{lacking}: the label of a person is a time, and whether the event came then"
        )
    if options.time is not None and options.target is not None:
        raise UserError("data.target does not go with data.time and data.event, which are the label: leave it out")
    if options.time is None and options.target is None:
        found["target"] = table.last()
    if options.weight is not None and options.frequency is not None:
        raise UserError("data.weight and data.frequency are both weights of samples: give one of them")
    check_different(options, table, found)
    ignored = [table.find("ignore", key) for key in listed(options.ignore)]
    check_apart("ignore", ignored, table, found, "data.target must be another one" if options.target is None else "")
    features = feature_columns(options, table, found, ignored)
    categories = [table.find("categories", key) for key in listed(options.categories)]
    known = set(features)
    for k in categories:
        if k not in known:
            raise UserError(
                f"data.categories has {table.called(k)} of {table.source}, which is no feature: take it out"
            )
    return Roles({key: found[key] for key in WORDS if key in found}, features, categories)


def check_apart(key: str, columns: Sequence[int], table: Table, found: dict[str, int], other: str = "") -> None:
    """UserError where data.``key`` has a column that is no feature; ``other`` says what is right for the last one."""
    for role, k in found.items():
        if k in columns:
            right = other if other and role == "target" else "take it out"
            raise UserError(
                f"data.{key} has {table.called(k)} of {table.source}, which is that of the {WORDS[role]}: {right}"
            )


def check_different(options: Any, table: Table, found: dict[str, int]) -> None:
    """UserError where a column is two things; clients and test rows may share one (train_0, test_0)."""
    for key, k in found.items():
        for other in WORDS:
            if other == key or found.get(other) != k or {key, other} == {"client", "test"}:
                continue
            first, second = sorted((key, other), key=lambda name: name in ("target", "time"))
            shown = toml_value(getattr(options, first))
            last = options.target is None and second == "target"
            right = "data.target must be another one" if last else "they must be two"
            raise UserError(
                f"data.{first} = {shown} is the column of the {WORDS[second]} of {table.source}, too: {right}"
            )


def feature_columns(options: Any, table: Table, found: dict[str, int], ignored: Sequence[int]) -> list[int]:
    """The columns of the features: those listed, in that order, or all that are nothing else."""
    if options.features is None:
        # The column by which two tables are matched numbers the rows, and is no feature unless it is listed.
        taken = {*found.values(), *ignored, *table.row_names, *([table.places[table.key]] if table.key else [])}
        return [k for k in range(len(table.names)) if k not in taken]
    features = [table.find("features", key) for key in listed(options.features)]
    check_apart("features", features, table, found)
    if ignored:
        raise UserError(
            "data.ignore and data.features contradict each other: one of them says which columns are features"
        )
    if len(set(features)) < len(features):
        raise UserError(f"data.features names a column twice: {', '.join(map(toml_value, listed(options.features)))}")
    return features
