"""Roles of the columns of a table, and what they give: labels, the clients that own the rows, and test rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError, format_count
from mpifed.core.roles import HELD_OUT, TEST, TRAINING, VALIDATION
from mpifed.core.toml import as_list, toml_value
from mpifed.core.typing import Array
from mpifed.data import sample_columns
from mpifed.data.formats.lines import group_equal_numbers, is_number
from mpifed.data.labels import abridge, format_exactly, join_words
from mpifed.data.partition import even_edges
from mpifed.data.pool import PoolSamples
from mpifed.data.tables.table import DataTable, TableColumn

WORDS = {
    "target": "labels",
    "client": "clients",
    "test": "rows for training and testing",
    "time": "times",
    "event": "events",
    **sample_columns.COLUMNS,
    "client_weights": "weights of clients",
}
FOLDS = dict.fromkeys(("train", "training", "0", "false"), TRAINING)
FOLDS |= dict.fromkeys(("test", "testing", "1", "true"), TEST)
FOLDS |= dict.fromkeys(("validation", "valid", "val", "dev"), VALIDATION)
EXACT = 2**53  # from here on not every whole number is a float
MARKS = "_-:. "  # marks between train or test and the name of a client
YES = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


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
    sample_columns.refuse_both_weights(special, "data.")
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


class RowOwners(NamedTuple):
    """Clients of the rows of a table, if it names them, and the role of each row, if it has any."""

    client: Array | None  # (d,), the number of the client of each row; None: a partition decides
    names: tuple[str, ...]
    role: Array | None  # (d,), the role of each row; None: no column says

    def roles(self) -> list[str]:
        """Return the roles that rows have beside that for training."""
        return [] if self.role is None else [role for role in HELD_OUT if (self.role == role).any()]


def read_labels(
    table: DataTable, roles: Roles, columns: dict[int, TableColumn], above: float | None
) -> tuple[Array, tuple[str, ...]]:
    """Return y (d,), numbers or texts, and notes."""
    if "time" in roles.special:
        return read_survival(table, roles.special["time"], roles.special["event"], columns)
    target = roles.special["target"]
    column = columns[target]
    if above is None:
        return column.decode(), ()
    if column.texts is not None:
        raise UserError(f"data.above = {above} needs labels that are numbers, but {table.cite(target)} holds texts")
    return (column.values > above).astype(np.float64), (f"labels above {above:g} are 1, the others 0",)


def read_survival(
    table: DataTable, time: int, event: int, columns: dict[int, TableColumn]
) -> tuple[Array, tuple[str, ...]]:
    """Return times (d,), negative without an event, and notes; UserError for wrong times or events, or no event."""
    times, events = columns[time], columns[event]
    time_label, event_label = (f"{table.cite(k)} of {table.source}" for k in (time, event))
    if times.texts is not None:
        raise UserError(f"{time_label} holds the times, and has texts such as {times.texts[0]!r}")
    if events.texts is None:
        happened = events.values.astype(np.float64)
    else:
        happened = np.array([*(YES.get(text.lower(), -1.0) for text in events.texts), -1.0])[events.values]
    if (wrong := np.flatnonzero((happened != 0) & (happened != 1))).size:
        shown = events.decode()[wrong[0]]
        shown = repr(str(shown)) if events.texts is not None else f"{shown:.10g}"
        right = "an event is 1 where it came and 0 where it did not"
        raise UserError(f"{event_label} has {shown} in {table.cite_row(int(wrong[0]))}: {right}")
    t = times.values.astype(np.float64)
    if (wrong := np.flatnonzero(~(t >= 0) | np.isinf(t))).size:
        right = "times are numbers that are not negative"
        raise UserError(f"{time_label} has {t[wrong[0]]:.10g} in {table.cite_row(int(wrong[0]))}: {right}")
    if not happened.any():
        raise UserError(f"{event_label} is 0 in all {len(happened):,} rows: without an event there is nothing to learn")
    if not t.any():
        raise UserError(f"{time_label} is 0 in all rows: there is no order of events")
    counts = f"{int(happened.sum()):,} events in {len(happened):,} rows"
    notes = [f"labels are times, negative where no event came: {counts}"]
    # The sign marks events, and 0 has none: half of the smallest other time is also before all others.
    if (zero := t == 0).any():
        t = np.where(zero, t[~zero].min() / 2, t)
        count = int(zero.sum())
        notes.append(
            f"{count:,} times are 0: they are taken as {t[zero][0]:g}, before all others, which changes no order"
        )
    return np.where(happened > 0, t, -t), tuple(notes)


def find_owners(table: DataTable, roles: Roles, columns: dict[int, TableColumn]) -> RowOwners:
    """Return the client of each row, and its role; UserError for a client without training rows."""
    client = columns[roles.special["client"]].distinct() if "client" in roles.special else None
    role = None
    if "test" in roles.special:
        k = roles.special["test"]
        words = columns[k].decode()
        texts = [f"{word:g}" for word in words] if words.dtype.kind in "biuf" else words.tolist()
        if k == roles.special.get("client"):
            texts, clients = split_names(texts)
            client = np.unique(clients, return_inverse=True)
        role = find_row_roles(table, k, texts)
    if client is None:
        return owners_by_file(table, role)
    names, index = client
    if names.dtype.kind == "f" and np.abs(names).max() >= EXACT:
        where = f"{table.cite(roles.special['client'])} of {table.source}"
        raise UserError(f"{where} has numbers from 2^53 on, which are not told apart: write clients as words")
    if table.written and all(map(is_number, names.tolist())):
        order = np.lexsort([names, names.astype(np.float64)])  # 2 before 10
        index = np.argsort(order)[index]
        names = names[order]
    shown = format_exactly(names) if names.dtype.kind in "biuf" else names.tolist()
    if role is not None:
        counts = np.bincount(index[role == TRAINING], minlength=len(names))
        empty = [name for name, count in zip(shown, counts, strict=True) if not count]
        if empty:
            raise UserError(
                f"{format_count(len(empty), 'client')} of {table.source} ({join_words(empty)}) "
                "have no rows for training: each client needs one"
            )
    return RowOwners(index, tuple(shown), role)


def note_similar_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return a note on clients whose names are different texts of one number."""
    twice = abridge(group_equal_numbers(names))
    return (f"different clients, though their names are one number: {', '.join(twice)}",) if twice else ()


def note_lost_clients(table: DataTable, k: int, before: TableColumn, after: TableColumn) -> tuple[str, ...]:
    """Return a note on clients, in column k ``before`` and ``after`` rows were left out, of which no row is left."""
    unmatched = table.unmatched_cells(k)
    if len(before.values) == len(after.values) and unmatched is None:
        return ()
    parts = [before] if unmatched is None else [before, unmatched]
    names = {name for part in parts for name in part.distinct()[0].tolist()}
    lost = sorted(names - set(after.distinct()[0].tolist()))
    if not lost:
        return ()
    lost = format_exactly(np.array(lost)) if before.texts is None else lost
    clients = f"{format_count(len(lost), 'client')} of {table.cite(k)}"
    return (f"{clients} {'has' if len(lost) == 1 else 'have'} no row left, and no part in the run: {join_words(lost)}",)


def owners_by_file(table: DataTable, role: Array | None) -> RowOwners:
    """Return each file as a client if there are several; else a partition decides."""
    owners = table.owners()
    if owners is None:
        return RowOwners(None, (), role)
    client, files = owners
    counts = np.bincount(client if role is None else client[role == TRAINING], minlength=len(files))
    if not counts.all():
        empty = files[int(counts.argmin())]
        raise UserError(f"{empty} has no row for training: each file of data.path is a client, which needs one")
    stems = [Path(file.removesuffix(".gz").removesuffix(".bz2")).stem for file in files]
    # Files of one name in several folders are distinguished by their paths.
    return RowOwners(client, tuple(stems if len(set(stems)) == len(stems) else files), role)


def split_names(texts: Sequence[str]) -> tuple[list[str], Array]:
    """Split texts such as train_0 into train and the client 0."""
    folds = []
    clients = []
    for text in texts:
        at = next((k for k, mark in enumerate(text) if mark in MARKS), len(text))
        folds.append(text[:at])
        clients.append(text[at + 1 :])
    return folds, np.array(clients)


def find_row_roles(table: DataTable, k: int, texts: Sequence[str]) -> Array:
    """Return the role of each row (d,); UserError where column k says none, or the same in all rows."""
    # Each distinct text once: a table has millions of rows, and two words in this column.
    folds = {text: FOLDS.get(text.lower()) for text in set(texts)}
    wrong = sorted(text for text, fold in folds.items() if fold is None)
    if wrong:
        raise UserError(
            f"data.test: {table.cite(k)} of {table.source} has {wrong[0]!r}: it must say train, "
            "validation or test, or 0 for training and 1 for testing"
        )
    role = np.array([folds[text] for text in texts])
    if (role == role[0]).all() or TRAINING not in role:
        raise UserError(
            f"data.test: {table.cite(k)} of {table.source} says {texts[0]!r} in all rows: some must be for training, "
            "some for testing"
        )
    return role


def split_samples(X: Any, y: Array, owners: RowOwners, m: int) -> tuple[PoolSamples, dict[str, PoolSamples]]:
    """Return training samples, and those of other roles; rows of these without owners are divided evenly, in order."""
    client, names, role = owners
    masks: dict[str, Array] = {} if role is None else {name: role == name for name in owners.roles()}
    training: Array = np.ones(len(y), bool) if role is None else role == TRAINING
    if client is None:
        held = {
            name: PoolSamples(X[mask], y[mask], None, np.diff(even_edges(int(mask.sum()), m)))
            for name, mask in masks.items()
        }
        X, y = (X, y) if role is None else (X[training], y[training])
        return PoolSamples(X, y, None, None), held
    order = np.argsort(client, kind="stable")

    def part(mask: Array) -> PoolSamples:
        return PoolSamples(X, y, order[mask[order]], np.bincount(client[mask], minlength=len(names)))

    return part(training), {name: part(mask) for name, mask in masks.items()}
