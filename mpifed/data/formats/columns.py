"""Columns of a table by name or number: which one holds the labels, and which one the clients."""

from collections.abc import Sequence
from pathlib import Path

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value

Column = int | str | None  # by name, by number from 0, or by a negative number from the end


def special_columns(path: Path, names: Sequence[str], header: bool, target: Column, client: Column) -> dict[str, int]:
    """The numbers of the columns of y (None: the last one) and, where one is wanted, of client."""
    found = {"y": column_of(path, names, header, "target", -1 if target is None else target)}
    if client is not None:
        found["client"] = column_of(path, names, header, "client", client)
        if found["client"] == found["y"]:
            right = "data.target must be another one" if target is None else "they must be two"
            raise UserError(f"data.client = {toml_value(client)} is the column of the labels of {path}, too: {right}")
    return found


def column_of(path: Path, names: Sequence[str], header: bool, key: str, wanted: int | str) -> int:
    """The number of the column that data.``key`` names; UserError where it does not exist."""
    if isinstance(wanted, str):
        if not header or wanted not in names:
            found = "columns " + ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
            raise UserError(
                f'data.{key} = "{wanted}" is not a column of {path}, which has {found if header else "no header"}'
            )
        return list(names).index(wanted)
    if not -len(names) <= wanted < len(names):
        found = f"{len(names)} columns, counted from 0"
        raise UserError(f"data.{key} = {wanted} is not a column of {path}, which has {found}")
    return wanted % len(names)
