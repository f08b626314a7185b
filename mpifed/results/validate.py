"""Checks of what is read from a result file: a file from elsewhere may hold anything under the names of ours."""

import struct
from typing import Any

import numpy as np

from mpifed.core.deprecated import column_name
from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry, is_dimension, values
from mpifed.core.toml import from_toml, toml_value
from mpifed.core.typing import Array
from mpifed.results.columns import ALL, CLIENTS, COLUMNS, RANKS, SCALES, STORED, UNKNOWN, UNSEEN, Column, Columns

DAMAGED = (OSError, RuntimeError, MemoryError, OverflowError, struct.error)
UNREADABLE = (*DAMAGED, KeyError, ValueError, TypeError, AttributeError)
TEXTS = """format config status stop_reason changed notes privacy reduction kernels local_steps torch device blas numba
numba_cuda numpy block_bytes_reason group_reason computed_otherwise started resumed finished mpifed_version
evaluated evaluated_on unseen_evaluated_on"""
COUNTS = "format_version clients ranks features block_bytes group rounds_redrawn graph_edges graph_parts missing"
TYPES: dict[str, tuple[type, str]] = dict.fromkeys(TEXTS.split(), (str, "a text"))
TYPES |= dict.fromkeys(COUNTS.split(), (int, "a whole number, at least 0"))
WHOLE = "whole numbers"
NUMBER = ("b", "i", "u", "f")  # beginnings of numpy's names of types
TEXT = (*NUMBER, "O")
NAMED = ("algorithm", "data", "problem", "selection")  # tables of an experiment file with a name
OTHERS = ("stop", "evaluate", "record")  # further tables that reports read
DIMENSIONS = {"model/personal": 2, "models/x": 2, "selection": 2}
WORDS = ("hostname", "cpus", "blas", "block_bytes_reason")  # columns of /ranks that are texts
KNOWN: dict[str, dict[str, Column]] = {"ranks": RANKS, "clients": CLIENTS, "unseen": UNSEEN}


def attributes(file: Any, name: str) -> dict[str, Any]:
    """The root attributes of the file ``name``. UserError for one of the wrong type."""
    found = {column_name("", key): plain(value) for key, value in file.attrs.items()}
    for key, (kind, wanted) in TYPES.items():
        value = found.get(key, kind())
        # No number may be below 0, and no text is below the empty one. True is an int to isinstance, but no count.
        if type(value) is not kind or value < kind():
            raise UserError(f"{name} is not a valid result: its attribute {key} must be {wanted}")
    return found


def plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and value.ndim == 0 else value


def configuration(text: str, name: str) -> dict[str, Any]:
    """The experiment file, ``text``, of the result ``name``. UserError where it is not one."""
    what = f"the attribute config of {name}"
    table = from_toml(text, what)

    def check(key: str, value: Any, kind: type, words: str) -> None:
        if not isinstance(value, kind):
            raise UserError(f"{what} is not an experiment file: {key} = {toml_value(value)} is not a {words}")

    # Not the whole configuration: that of another version of mpifed may have keys that this one does not know.
    for key in (*NAMED, *OTHERS):
        check(key, table.get(key, {}), dict, "table")
    for key in NAMED:
        check(f"{key}.name", table.get(key, {}).get("name", ""), str, "text")
    return table


def column(stored: Any, key: str, name: str, ndim: int | None = None) -> Array:
    """The dataset ``key`` of the file ``name`` as an array. UserError where its type or shape is wrong."""
    ndim = ndim or DIMENSIONS.get(key, 1)
    array = values(stored, f"{key} of {name}")
    part, _, last = key.rpartition("/")
    types, wanted = kind_of(part, last)
    if array.ndim != ndim or not array.dtype.str[1:].startswith(types):
        has = f"type {array.dtype} and shape {array.shape}"
        what = "a column" if ndim == 1 else "a table"
        raise UserError(f"{name} is not a valid result: {key} has {has}, but must be {what} of {wanted}")
    if part in KNOWN and wanted == WHOLE and last not in (STORED, "round") and array.size and array.min() < 0:
        raise UserError(f"{name} is not a valid result: {key} has numbers below 0")
    return array


def kind_of(part: str, key: str) -> tuple[tuple[str, ...], str]:
    """With what numpy's names of the types of a dataset may begin, such as i or f8, and what these are called."""
    if part == "ranks" and key in WORDS:
        return TEXT, "texts"
    if key in ("round", STORED, "selection") or (SCALES | KNOWN.get(part, {})).get(key, UNKNOWN).integer:
        return ("i4", "i8"), WHOLE
    # Curves are drawn and compared from these, and in single precision f − f* would stop at 1e-7.
    if part == "rounds":
        return ("i8", "f8"), "numbers of 64 bits"
    return TEXT if part == "certificate" else NUMBER, "numbers"


def columns(file: Any, part: str, name: str, default: Columns | None = None) -> Columns:
    """The datasets of the group ``part`` as arrays, texts as str; ``default`` where they cannot be read."""
    found = Columns()
    try:
        group = entry(file, part, name)
        for stored_as, stored in datasets(group, name) if group is not None else ():
            key = column_name(part, stored_as)
            if part == "clients" and (key in (STORED, "round") or (stored.ndim == 2 and key not in CLIENTS)):
                continue  # of some rounds: RowLog wrote it, and read_by_client reads it
            if not is_dimension(stored):
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
    """The complete rows of /rounds, unit and description of each column, and the same rows of /selection."""
    # A row is complete when its number is there: numbers are written last and -1 until then. They are read first,
    # because a writer may add rows meanwhile, which the columns then have in excess, and never a number too many.
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
    about = {}
    for stored_as, one in datasets(entry(file, "rounds", name), name):
        key = column_name("rounds", stored_as)
        if key in found:
            about[key] = (str(one.attrs.get("units", "")), str(one.attrs.get("description", "")))
    # In the order of COLUMNS, and what an algorithm reports of its own behind them: HDF5 has names in alphabetic order.
    known = [key for key in ("round", *COLUMNS) if key in found]
    rows = Columns((key, found[key][:count]) for key in dict.fromkeys([*known, *found]))
    return rows, about, selection[:count]
