"""The samples of clients in a table: their labels, who owns each row, and which rows are for testing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError, counted
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.formats.lines import is_number, one_number
from mpifed.data.labels import exact, folded, listed
from mpifed.data.partition import edges
from mpifed.data.pool import Samples
from mpifed.data.tables.roles import Roles
from mpifed.data.tables.table import Column, Table

FOLDS = dict.fromkeys(("train", "training", "0", "false"), False)
FOLDS |= dict.fromkeys(("test", "testing", "1", "true"), True)
EXACT = 2**53  # from here on not every whole number is a float
MARKS = "_-:. "  # between train or test and the name of a client
YES = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


class Owned(NamedTuple):
    """Whose each row is, (d,), and the names of the clients; None where a partition is to say."""

    client: Array | None
    names: tuple[str, ...]
    test: Array | None  # whether a row is for testing, (d,)


def labels(
    table: Table, roles: Roles, columns: dict[int, Column], above: float | None
) -> tuple[Array, tuple[str, ...]]:
    """y (d,), numbers or texts, and notes."""
    if "time" in roles.special:
        return survival(table, roles.special["time"], roles.special["event"], columns)
    target = roles.special["target"]
    column = columns[target]
    if above is None:
        return column.plain(), ()
    if column.texts is not None:
        raise UserError(f"data.above = {above} needs labels that are numbers, but {table.called(target)} holds texts")
    return (column.values > above).astype(np.float64), (f"labels above {above:g} are 1, the others 0",)


def survival(table: Table, time: int, event: int, columns: dict[int, Column]) -> tuple[Array, tuple[str, ...]]:
    """Times, negative where no event came: (d,). UserError for negative times, events other than 0 and 1, or none."""
    times, events = columns[time], columns[event]
    when, what = (f"{table.called(k)} of {table.source}" for k in (time, event))
    if times.texts is not None:
        raise UserError(f"{when} holds the times, and has texts such as {times.texts[0]!r}")
    if events.texts is None:
        came = events.values.astype(np.float64)
    else:
        came = np.array([*(YES.get(text.lower(), -1.0) for text in events.texts), -1.0])[events.values]
    if (wrong := np.flatnonzero((came != 0) & (came != 1))).size:
        shown = events.plain()[wrong[0]]
        shown = repr(str(shown)) if events.texts is not None else f"{shown:.10g}"
        right = "an event is 1 where it came and 0 where it did not"
        raise UserError(f"{what} has {shown} in {table.row(int(wrong[0]))}: {right}")
    t = times.values.astype(np.float64)
    if (wrong := np.flatnonzero(~(t >= 0) | np.isinf(t))).size:
        right = "times are numbers that are not negative"
        raise UserError(f"{when} has {t[wrong[0]]:.10g} in {table.row(int(wrong[0]))}: {right}")
    if not came.any():
        raise UserError(f"{what} is 0 in all {len(came):,} rows: without an event there is nothing to learn")
    if not t.any():
        raise UserError(f"{when} is 0 in all rows: there is no order of events")
    notes = [f"labels are times, negative where no event came: {int(came.sum()):,} events in {len(came):,} rows"]
    # A sign tells events from others, and 0 has none: half of the least time is before all others too.
    if (zero := t == 0).any():
        t = np.where(zero, t[~zero].min() / 2, t)
        count = int(zero.sum())
        notes.append(
            f"{count:,} times are 0: they are taken as {t[zero][0]:g}, before all others, which changes no order"
        )
    return np.where(came > 0, t, -t), tuple(notes)


def owned(table: Table, roles: Roles, columns: dict[int, Column]) -> Owned:
    """Whose each row is, and whether it is for testing."""
    client = columns[roles.special["client"]].distinct() if "client" in roles.special else None
    test = None
    if "test" in roles.special:
        k = roles.special["test"]
        words = columns[k].plain()
        texts = [f"{word:g}" for word in words] if words.dtype.kind in "biuf" else words.tolist()
        if k == roles.special.get("client"):
            texts, clients = apart(texts)
            client = np.unique(clients, return_inverse=True)
        test = folds(table, k, texts)
    if client is None:
        return by_file(table, test)
    names, index = client
    if names.dtype.kind == "f" and np.abs(names).max() >= EXACT:
        where = f"{table.called(roles.special['client'])} of {table.source}"
        raise UserError(f"{where} has numbers from 2^53 on, which are not told apart: write clients as words")
    if table.written and all(map(is_number, names.tolist())):
        order = np.lexsort([names, names.astype(np.float64)])  # 2 before 10
        index = np.argsort(order)[index]
        names = names[order]
    shown = exact(names) if names.dtype.kind in "biuf" else names.tolist()
    if test is not None:
        counts = np.bincount(index[~test], minlength=len(names))
        empty = [name for name, count in zip(shown, counts, strict=True) if not count]
        if empty:
            raise UserError(
                f"{counted(len(empty), 'client')} of {table.source} ({listed(empty)}) "
                "have rows for testing only: each client needs one for training"
            )
    return Owned(index, tuple(shown), test)


def alike(names: Sequence[str]) -> tuple[str, ...]:
    """A note on clients whose names are different texts of one number."""
    twice = folded(one_number(names))
    return (f"different clients, though their names are one number: {', '.join(twice)}",) if twice else ()


def without_rows(table: Table, k: int, before: Column, after: Column) -> tuple[str, ...]:
    """A note on clients, in column k, of which rows were left out ``before`` the others, and none is left."""
    unmatched = table.unmatched_cells(k)
    if len(before.values) == len(after.values) and unmatched is None:
        return ()
    parts = [before] if unmatched is None else [before, unmatched]
    had = {name for part in parts for name in part.distinct()[0].tolist()}
    gone = sorted(had - set(after.distinct()[0].tolist()))
    if not gone:
        return ()
    gone = exact(np.array(gone)) if before.texts is None else gone
    clients = f"{counted(len(gone), 'client')} of {table.called(k)}"
    return (f"{clients} {'has' if len(gone) == 1 else 'have'} no row left, and no part in the run: {listed(gone)}",)


def by_file(table: Table, test: Array | None) -> Owned:
    """Each file a client, where there are several; else a partition is to say."""
    found = table.owners()
    if found is None:
        return Owned(None, (), test)
    client, files = found
    counts = np.bincount(client if test is None else client[~test], minlength=len(files))
    if not counts.all():
        empty = files[int(counts.argmin())]
        raise UserError(f"{empty} has no row for training: each file of data.path is a client, which needs one")
    stems = [Path(file.removesuffix(".gz").removesuffix(".bz2")).stem for file in files]
    # Files of one name in several folders are told apart by their paths.
    return Owned(client, tuple(stems if len(set(stems)) == len(stems) else files), test)


def apart(texts: Sequence[str]) -> tuple[list[str], Array]:
    """Texts such as train_0 as train, and the client 0."""
    folds = []
    clients = []
    for text in texts:
        at = next((k for k, mark in enumerate(text) if mark in MARKS), len(text))
        folds.append(text[:at])
        clients.append(text[at + 1 :])
    return folds, np.array(clients)


def folds(table: Table, k: int, texts: Sequence[str]) -> Array:
    """Which rows are for testing. UserError where column k says neither, or leaves no row."""
    # Each distinct text once: a table has millions of rows, and two words in this column.
    known = {text: FOLDS.get(text.lower()) for text in set(texts)}
    wrong = sorted(text for text, fold in known.items() if fold is None)
    if wrong:
        raise UserError(
            f"data.test: {table.called(k)} of {table.source} has {wrong[0]!r}: it must say train or test, "
            "or 0 for training and 1 for testing"
        )
    test = np.array([known[text] for text in texts], bool)
    if test.all() or not test.any():
        raise UserError(
            f"data.test: {table.called(k)} of {table.source} says {texts[0]!r} in all rows: some must be for training, "
            "some for testing"
        )
    return test


def split(X: Any, y: Array, own: Owned, m: int) -> tuple[Samples, Samples | None]:
    """Training and test samples. Without clients of their own, test rows are dealt out evenly, in order, to ``m``."""
    if own.client is None:
        if own.test is None:
            return Samples(X, y, None, None), None
        rows = np.flatnonzero(own.test)
        tests = Samples(X[rows], y[rows], None, np.diff(edges(len(rows), m)))
        return Samples(X[~own.test], y[~own.test], None, None), tests
    order = np.argsort(own.client, kind="stable")
    m = len(own.names)
    if own.test is None:
        return Samples(X, y, order, np.bincount(own.client, minlength=m)), None
    train, test = (
        Samples(X, y, order[mask[order]], np.bincount(own.client[mask], minlength=m)) for mask in (~own.test, own.test)
    )
    return train, test


def contradiction(m: int, options: Any, source: str, has: str) -> None:
    if options.clients not in (None, m):
        raise UserError(
            f"data.clients = {options.clients} contradicts {source}, which {has} of {m} clients: leave it out"
        )
    if options.partition is not None:
        raise UserError(
            f"data.partition = {toml_value(options.partition.label())} contradicts {source}, which {has} of {m} "
            "clients and so defines the rows of each: leave it out"
        )
