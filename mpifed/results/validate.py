"""Checks of what is read from a result file: a file from elsewhere may hold anything under the names of ours."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry, values
from mpifed.core.toml import from_toml, toml_value
from mpifed.core.typing import Array
from mpifed.results.columns import ALL, CLIENTS, COLUMNS, RANKS, SCALES, UNKNOWN, UNSEEN, Column, Columns
from mpifed.results.netcdf import NO_COORDINATE

DAMAGED = (OSError, RuntimeError, MemoryError, OverflowError, struct.error)
UNREADABLE = (*DAMAGED, KeyError, ValueError, TypeError, AttributeError)
TEXTS = """format config status stop_reason changed notes privacy reduction kernels local_steps torch device blas numba
numba_cuda numpy block_bytes_because group_because computed_otherwise started resumed finished mpifed_version"""
COUNTS = "format_version clients ranks features block_bytes group rounds_redrawn graph_edges graph_parts"
TYPES: dict[str, tuple[type, str]] = dict.fromkeys(TEXTS.split(), (str, "a text"))
TYPES |= dict.fromkeys(COUNTS.split(), (int, "a whole number, at least 0"))
WHOLE = "whole numbers"
NAMED = ("algorithm", "data", "problem", "selection")  # tables of an experiment file with a name
OTHERS = ("stop", "evaluate", "record")  # further tables that reports read
DIMENSIONS = {"model/personal": 2, "models/x": 2, "selection": 2}
WORDS = ("hostname", "cpus", "blas", "block_bytes_because")  # columns of /ranks that are texts
KNOWN: dict[str, dict[str, Column]] = {"ranks": RANKS, "clients": CLIENTS, "unseen": UNSEEN}


def attributes(file: Any, name: str) -> dict[str, Any]:
    """The root attributes of the file ``name``. UserError for one of the wrong type."""
    found = {key: plain(value) for key, value in file.attrs.items()}
    for key, (kind, wanted) in TYPES.items():
        value = found.get(key, kind())
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise UserError(f"{name} is not a valid result: its attribute {key} must be {wanted}")
    return found


def plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and value.ndim == 0 else value


def configuration(text: str, name: str) -> dict[str, Any]:
    """The experiment file, ``text``, of the result ``name``. UserError where it is not one."""
    table = from_toml(text, f"the attribute config of {name}")
    for key in (*NAMED, *OTHERS):
        if not isinstance(table.get(key, {}), dict):
            wrong = f"{key} = {toml_value(table[key])} is not a table"
            raise UserError(f"the attribute config of {name} is not an experiment file: {wrong}")
    for key in NAMED:
        own = table.get(key, {}).get("name", "")
        if not isinstance(own, str):
            wrong = f"{key}.name = {toml_value(own)} is not a text"
            raise UserError(f"the attribute config of {name} is not an experiment file: {wrong}")
    return table


def column(stored: Any, key: str, name: str, ndim: int | None = None) -> Array:
    """The dataset ``key`` of the file ``name`` as an array. UserError where its type or shape is wrong."""
    ndim = ndim or DIMENSIONS.get(key, 1)
    array = values(stored, f"{key} of {name}")
    part, _, last = key.rpartition("/")
    right, wanted = kind_of(part, last)
    if array.ndim != ndim or not right(array.dtype):
        what = "a column" if ndim == 1 else "a table"
        raise UserError(
            f"{name} is not a valid result: {key} has type {array.dtype} and shape {array.shape}, but must be {what} "
            f"of {wanted}"
        )
    if part in KNOWN and wanted == WHOLE and last != "round" and array.size and array.min() < 0:
        raise UserError(f"{name} is not a valid result: {key} has numbers below 0")
    return array


def kind_of(part: str, key: str) -> tuple[Callable[[np.dtype[Any]], bool], str]:
    """Which types a dataset of a group may have, and what these are called."""
    if part == "ranks" and key in WORDS:
        return lambda dtype: dtype.kind in "biufO", "texts"
    if key in ("round", "selection") or (SCALES | KNOWN.get(part, {})).get(key, UNKNOWN).integer:
        return lambda dtype: dtype.kind == "i" and dtype.itemsize >= 4, WHOLE
    if part == "rounds":
        return lambda dtype: dtype.kind in "if" and dtype.itemsize == 8, "numbers of 64 bits"
    return lambda dtype: dtype.kind in ("biufO" if part == "certificate" else "biuf"), "numbers"


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
    if part in ("ranks", "clients"):
        check_alike(found, part, name)
    return found


def check_alike(found: Columns, part: str, name: str) -> None:
    if len(set(map(len, found.values()))) > 1:
        raise UserError(f"{name} is not a valid result: the columns of {part} differ in length")


def check_rising(numbers: Array, part: str, name: str, every: bool = False) -> None:
    """UserError where the numbers of rounds of a group do not rise, or are not 0, 1, 2 … where it has ``every``."""
    if every and not np.array_equal(numbers, np.arange(len(numbers))):
        raise UserError(f"{name} is not a valid result: {part}/round must count 0, 1, 2 …")
    if (np.diff(numbers) <= 0).any():
        raise UserError(f"{name} is not a valid result: the numbers in {part}/round must rise")


def recorded_rounds(file: Any, name: str, attrs: dict[str, Any]) -> tuple[Columns, dict[str, tuple[str, str]], Array]:
    """The complete rows of /rounds, unit and description of each column, and the same rows of /selection.

    A row is complete when its number is there. The numbers are written last, so they are read first.
    """
    numbers = column(entry(entry(file, "rounds", name), "round", name), "rounds/round", name)
    count = len(numbers) - int(np.count_nonzero(numbers < 0))
    found = columns(file, "rounds", name)
    stored = entry(file, "selection", name)
    if attrs.get("status") == "finished":
        check_alike(found, "rounds", name)
    count = min(count, *map(len, found.values()))
    check_rising(numbers[:count], "rounds", name, every=True)
    if stored is None:
        selection = np.full((count, 1), -1, np.int32)
    else:
        selection = column(stored, "selection", name)
        count = min(count, len(selection))
        clients = attrs.get("clients", 0)
        if not selection.shape[1]:
            raise UserError(f"{name} is not a valid result: selection has no columns")
        if selection.size and (selection.min() < ALL or (clients and selection.max() >= clients)):
            raise UserError(f"{name} is not a valid result: selection names clients that are not among its {clients}")
    own = {key: file["rounds"][key].attrs for key in found}
    about = {key: (str(one.get("units", "")), str(one.get("description", ""))) for key, one in own.items()}
    keys = dict.fromkeys([*(key for key in ("round", *COLUMNS) if key in found), *found])
    return Columns((key, found[key][:count]) for key in keys), about, selection[:count]
