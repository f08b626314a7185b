"""Checks of the content of a result file: a file from elsewhere may hold anything under these names."""

import struct
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import get_entry, is_dimension, iterate_datasets, read_dataset
from mpifed.core.toml import from_toml, toml_value
from mpifed.core.typing import Array
from mpifed.results.columns import ALL, CLIENTS, COLUMNS, RANKS, SCALES, STORED, UNKNOWN, UNSEEN, ColumnInfo, Columns

DAMAGED = (OSError, RuntimeError, MemoryError, OverflowError, struct.error)
UNREADABLE = (*DAMAGED, KeyError, ValueError, TypeError, AttributeError)
TEXTS = """format config status stop_reason changed notes privacy reduction kernels local_steps torch device blas numba
numba_cuda numpy block_bytes_reason group_reason computed_otherwise started resumed finished mpifed_version
evaluated evaluated_on unseen_evaluated_on"""
COUNTS = "format_version clients ranks features block_bytes group rounds_redrawn graph_edges graph_parts missing"
TYPES: dict[str, tuple[type, str]] = dict.fromkeys(TEXTS.split(), (str, "a text"))
TYPES |= dict.fromkeys(COUNTS.split(), (int, "a whole number, at least 0"))
INTEGERS = "whole numbers"
NUMBER = ("b", "i", "u", "f")  # beginnings of numpy's names of types
TEXT = (*NUMBER, "O")
NAMED = ("algorithm", "data", "problem", "selection")  # tables of an experiment file with a name
OTHERS = ("stop", "evaluate", "record")  # further tables that reports read
DIMENSIONS = {"model/personal": 2, "models/x": 2, "selection": 2}
WORDS = ("hostname", "cpus", "blas", "block_bytes_reason")  # columns of /ranks that are texts
KNOWN: dict[str, dict[str, ColumnInfo]] = {"ranks": RANKS, "clients": CLIENTS, "unseen": UNSEEN}


def require_valid(holds: object, name: str, fault: str) -> None:
    """Raise UserError, with the fault of the result file ``name``, unless a check ``holds``."""
    if not holds:
        raise UserError(f"{name} is not a valid result: {fault}")


def read_attributes(file: Any, name: str) -> dict[str, Any]:
    """Return the root attributes of the file ``name``. UserError for one of the wrong type."""
    attrs = {key: to_scalar(value) for key, value in file.attrs.items()}
    for key, (cls, wanted) in TYPES.items():
        value = attrs.get(key, cls())
        # No number may be below 0, and no text is below the empty one. isinstance would take True for a count.
        require_valid(type(value) is cls and value >= cls(), name, f"its attribute {key} must be {wanted}")
    return attrs


def to_scalar(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and value.ndim == 0 else value


def parse_configuration(text: str, name: str) -> dict[str, Any]:
    """Return the tables of the experiment file ``text`` of the result ``name``. UserError where it is invalid."""
    what = f"the attribute config of {name}"
    table = from_toml(text, what)

    def check(key: str, value: Any, cls: type, words: str) -> None:
        if not isinstance(value, cls):
            raise UserError(f"{what} is not an experiment file: {key} = {toml_value(value)} is not a {words}")

    # Not all keys: the file of another version of mpifed may have keys that are unknown here.
    for key in (*NAMED, *OTHERS):
        check(key, table.get(key, {}), dict, "table")
    for key in NAMED:
        check(f"{key}.name", table.get(key, {}).get("name", ""), str, "text")
    return table


def read_column(stored: Any, key: str, name: str, ndim: int | None = None) -> Array:
    """Return the dataset ``key`` of the file ``name`` as an array. UserError where its type or shape is wrong."""
    ndim = ndim or DIMENSIONS.get(key, 1)
    array = read_dataset(stored, f"{key} of {name}")
    part, _, last = key.rpartition("/")
    types, wanted = allowed_dtypes(part, last)
    has = f"type {array.dtype} and shape {array.shape}"
    what = "a column" if ndim == 1 else "a table"
    right = array.ndim == ndim and array.dtype.str[1:].startswith(types)
    require_valid(right, name, f"{key} has {has}, but must be {what} of {wanted}")
    counts = part in KNOWN and wanted == INTEGERS and last not in (STORED, "round") and array.size
    require_valid(not counts or array.min() >= 0, name, f"{key} has numbers below 0")
    return array


def allowed_dtypes(part: str, key: str) -> tuple[tuple[str, ...], str]:
    """Return the beginnings of the allowed names of types of a dataset, such as i or f8, and a word for them."""
    if part == "ranks" and key in WORDS:
        return TEXT, "texts"
    if key in ("round", STORED, "selection") or (SCALES | KNOWN.get(part, {})).get(key, UNKNOWN).integer:
        return ("i4", "i8"), INTEGERS
    # Curves are drawn and compared from these: in single precision f − f* would stop at 1e-7.
    if part == "rounds":
        return ("i8", "f8"), "numbers of 64 bits"
    return TEXT if part == "certificate" else NUMBER, "numbers"


def read_columns(file: Any, part: str, name: str, default: Columns | None = None) -> Columns:
    """Return the datasets of the group ``part`` as arrays, texts as str; ``default`` where they cannot be read."""
    arrays = Columns()
    try:
        group = get_entry(file, part, name)
        for key, stored in iterate_datasets(group, name) if group is not None else ():
            if part == "clients" and (key in (STORED, "round") or (stored.ndim == 2 and key not in CLIENTS)):
                continue  # a table of some rounds, from RowLog, which read_by_client reads
            if not is_dimension(stored):
                arrays[key] = read_column(stored, f"{part}/{key}", name)
    except UNREADABLE:
        if default is None:
            raise
        return default
    if part in ("ranks", "clients"):
        check_lengths(arrays, part, name)
    return arrays


def check_lengths(arrays: Columns, part: str, name: str) -> None:
    require_valid(len(set(map(len, arrays.values()))) <= 1, name, f"the columns of {part} differ in length")


def check_rounds_rise(numbers: Array, part: str, name: str, every: bool = False) -> None:
    """Raise UserError where numbers of rounds do not rise or, with ``every``, are not 0, 1, 2 …"""
    counting = not every or np.array_equal(numbers, np.arange(len(numbers)))
    require_valid(counting, name, f"{part}/round must count 0, 1, 2 …")
    require_valid((np.diff(numbers) > 0).all(), name, f"the numbers in {part}/round must rise")


def read_rounds(file: Any, name: str, attrs: dict[str, Any], selected: bool = True) -> tuple[Columns, Array]:
    """Return the complete rows of /rounds, and the rows of /selection, if ``selected``."""
    # A row is complete when it has its number: numbers are written last and are -1 until then. They are read first,
    # because a writer may add rows meanwhile: then the columns have rows too many, never the numbers.
    numbers = read_column(get_entry(get_entry(file, "rounds", name), "round", name), "rounds/round", name)
    count = len(numbers) - int(np.count_nonzero(numbers < 0))
    arrays = read_columns(file, "rounds", name)
    stored = get_entry(file, "selection", name) if selected else None
    if attrs.get("status") == "finished":
        check_lengths(arrays, "rounds", name)
    count = min(count, *map(len, arrays.values()))
    check_rounds_rise(numbers[:count], "rounds", name, every=True)
    if stored is None:
        selection = np.full((count, 1), -1, np.int32)
    else:
        selection = read_column(stored, "selection", name)
        count = min(count, len(selection))
        clients = attrs.get("clients", 0)
        require_valid(selection.shape[1], name, "selection has no columns")
        among = not selection.size or (selection.min() >= ALL and (not clients or selection.max() < clients))
        require_valid(among, name, f"selection names clients that are not among its {clients}")
    # In the order of COLUMNS, then the columns that only an algorithm reports: HDF5 sorts names alphabetically.
    names = [key for key in ("round", *COLUMNS) if key in arrays]
    rows = Columns((key, arrays[key][:count]) for key in dict.fromkeys([*names, *arrays]))
    return rows, selection[:count]


def read_about(file: Any, name: str) -> dict[str, tuple[str, str]]:
    """Return unit and description of each column of /rounds."""
    columns = dict(iterate_datasets(get_entry(file, "rounds", name), name))
    said = {key: dataset.attrs for key, dataset in columns.items() if not is_dimension(dataset)}
    return {key: (str(of.get("units", "")), str(of.get("description", ""))) for key, of in said.items()}
