"""Checks of what is read from a result file: a file from elsewhere may hold anything under the names of ours."""

import struct
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry, values
from mpifed.core.toml import from_toml, toml_value
from mpifed.core.typing import Array
from mpifed.results.columns import CLIENTS, Columns
from mpifed.results.netcdf import NO_COORDINATE

DAMAGED = (OSError, RuntimeError, MemoryError, OverflowError, struct.error)
UNREADABLE = (*DAMAGED, KeyError, ValueError, TypeError, AttributeError)
TYPES: dict[str, Any] = dict.fromkeys(("format", "config", "status", "stop_reason"), str)
TYPES |= dict.fromkeys(("format_version", "clients", "ranks"), int)
DIMENSIONS = {"model/personal": 2, "models/x": 2, "selection": 2}


def attributes(file: Any, name: str) -> dict[str, Any]:
    """The root attributes of the file ``name``. UserError for one of the wrong type."""
    found = {
        key: value.item() if hasattr(value, "item") and value.ndim == 0 else value for key, value in file.attrs.items()
    }
    for key, kind in TYPES.items():
        if not isinstance(found.get(key, kind()), kind):
            wanted = "a text" if kind is str else "a whole number"
            raise UserError(f"{name} is not a valid result: its attribute {key} must be {wanted}")
    return found


def configuration(text: str, name: str) -> dict[str, Any]:
    """The experiment file, ``text``, of the result ``name``. UserError where it is not one."""
    table = from_toml(text, f"the attribute config of {name}")
    for key in ("algorithm", "data", "problem", "selection"):
        if not isinstance(table.get(key, {}), dict):
            raise UserError(
                f"the attribute config of {name} is not an experiment file: {key} = {toml_value(table[key])} is not a "
                "table"
            )
    return table


def column(stored: Any, key: str, name: str, ndim: int | None = None) -> Array:
    """The dataset ``key`` of the file ``name`` as an array. UserError where its type or shape is wrong."""
    ndim = ndim or DIMENSIONS.get(key, 1)
    array = values(stored, f"{key} of {name}")
    text = array.dtype.kind == "O" and not key.startswith(("rounds", "model"))
    if array.ndim != ndim or not (text or array.dtype.kind in "biuf"):
        what = "a column" if ndim == 1 else "a table"
        raise UserError(
            f"{name} is not a valid result: {key} has type {array.dtype} and shape {array.shape}, but must be {what} "
            "of numbers"
        )
    return array


def columns(file: Any, part: str, name: str, default: Columns | None = None) -> Columns:
    """The datasets of the group ``part`` as arrays, texts as str; ``default`` where they cannot be read."""
    found = Columns()
    try:
        group = entry(file, part, name)
        for key, stored in datasets(group, name) if group is not None else ():
            if part == "clients" and (key == "round" or (stored.ndim == 2 and key not in CLIENTS)):
                continue  # of some rounds: read_by_client
            if not stored.attrs.get("NAME", b"").startswith(NO_COORDINATE):
                found[key] = column(stored, f"{part}/{key}", name)
    except UNREADABLE:
        if default is None:
            raise
        return default
    if part in ("ranks", "clients") and len(set(map(len, found.values()))) > 1:
        raise UserError(f"{name} is not a valid result: the columns of {part} differ in length")
    return found
