"""Labels from the columns of a table: numbers, texts, or times with events."""

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.tables.roles import Roles
from mpifed.data.tables.table import Column, Table

YES = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


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
