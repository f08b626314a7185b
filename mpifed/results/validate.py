"""What is read from a result file, checked: a file that another made may hold anything under the names that are known."""

from __future__ import annotations

import mmap
import struct
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry, values
from mpifed.core.toml import from_toml, toml_value
from mpifed.core.typing import Array
from mpifed.results.columns import Columns
from mpifed.results.netcdf import NO_COORDINATE

UNREADABLE = (
    OSError,
    RuntimeError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    MemoryError,
    OverflowError,
    struct.error,
)
TYPES: dict[str, Any] = {
    "format": str,
    "format_version": int,
    "config": str,
    "status": str,
    "stop_reason": str,
    "clients": int,
    "ranks": int,
}
HEAP, OBJECT = b"GCOL\x01\0\0\0", struct.Struct("<H6xQ")
DIMENSIONS = {"personal": 2, "selection": 2}


def heaps(path: str) -> None:
    """ValueError where the texts of an HDF5 file lie in a damaged heap, on which the library would read without end.

    A heap is "GCOL", a version, its bytes, then objects: number (0: the rest is free), references, bytes, content. Source:
    HDF5 File Format Specification, III.E.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(HEAP)
        while start >= 0:
            (size,) = struct.unpack_from("<Q", content, start + 8)
            place, end = start + 16, start + size
            while place + OBJECT.size <= min(end, len(content)):
                number, length = OBJECT.unpack_from(content, place)
                step = OBJECT.size + -(-length // 8) * 8 if number else length
                if step < OBJECT.size or place + step > end:
                    raise ValueError("a heap is damaged")
                place += step
            start = content.find(HEAP, start + 16)


def attributes(file: Any, name: str) -> dict[str, Any]:
    """The root attributes of a file; UserError, which calls it ``name``, for one of the wrong type."""
    found = {
        key: value.item() if hasattr(value, "item") and value.ndim == 0 else value for key, value in file.attrs.items()
    }
    for key, kind in TYPES.items():
        if not isinstance(found.get(key, kind()), kind):
            raise UserError(
                f"{name} is no sound result: its attribute {key} is no {'text' if kind is str else 'whole number'}"
            )
    return found


def configuration(text: str, name: str) -> dict[str, Any]:
    """The experiment file of a result; UserError, which calls the result ``name``, where it is none."""
    table = from_toml(text, f"the attribute config of {name}")
    for key in ("algorithm", "data", "problem", "selection"):
        if not isinstance(table.get(key, {}), dict):
            raise UserError(
                f"the attribute config of {name} is no experiment file: {key} = {toml_value(table[key])} is no table"
            )
    return table


def column(stored: Any, key: str, name: str) -> Array:
    """The dataset ``key`` of a file, whole; UserError, which calls the file ``name``, where it cannot be what it is called."""
    array, last = values(stored, f"{key} of {name}"), key.rsplit("/", 1)[-1]
    text = array.dtype.kind == "O" and not key.startswith(("rounds", "model"))
    if array.ndim != DIMENSIONS.get(last, 1) or not (text or array.dtype.kind in "biuf"):
        what = "a table" if last in DIMENSIONS else "a column"
        raise UserError(
            f"{name} is no sound result: {key} has the type {array.dtype} and the shape {array.shape}, and must be "
            f"{what} of numbers"
        )
    return array


def columns(file: Any, part: str, name: str, default: Columns | None = None) -> Columns:
    """The datasets of a group as arrays, texts as str; ``default`` where they cannot be read."""
    try:
        group = entry(file, part, name)
        found = (
            Columns(
                (key, column(stored, f"{part}/{key}", name))
                for key, stored in datasets(group, name)
                if not stored.attrs.get("NAME", b"").startswith(NO_COORDINATE)
            )
            if group is not None
            else Columns()
        )
    except UNREADABLE:
        if default is None:
            raise
        return default
    if part in ("ranks", "clients") and len(set(map(len, found.values()))) > 1:
        raise UserError(f"{name} is no sound result: the columns of {part} differ in length")
    return found
