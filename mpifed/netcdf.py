"""HDF5 datasets as netCDF has them: with dimensions, units and a description, so that xarray reads them too."""
from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mpifed.claim import replacing
from mpifed.columns import SCALES, Column
from mpifed.store import synchronise

NO_COORDINATE = b"This is a netCDF dimension but not a netCDF variable."  # how netCDF marks a dimension that is no data

LONGEST_CUT = 1 << 22
CACHE = 1 << 16    # bytes of a column that HDF5 keeps in memory

Array = NDArray[Any]
Group = Any    # h5py.Group
Dataset = Any  # h5py.Dataset


def text(value: str) -> str:
    """Text that HDF5 can store: one without NUL characters and stray bytes of a command line."""
    return value.replace("\0", "").encode("utf-8", "replace").decode()


def begin(file: Group, attrs: Mapping[str, Any], groups: Sequence[str]) -> Group:
    """A new file with root attributes and groups; their links are all made here, before there is anything to lose."""
    try:
        for name, value in attrs.items():
            if value is not None:
                file.attrs[name] = text(value) if isinstance(value, str) else value
        for name in groups:
            file.create_group(name)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


@contextmanager
def created(path: str | os.PathLike[str] | None, force: bool, attrs: Mapping[str, Any],
            groups: Sequence[str]) -> Iterator[h5py.File]:
    """A new result file with its root attributes and groups; one that it replaces stays until this is on the disk."""
    if path is None:
        yield begin(h5py.File(f"mpifed-{uuid.uuid4()}", "w", driver="core", backing_store=False), attrs, groups)
        return
    with replacing(path, force) as place:
        file = begin(h5py.File(place, "w", locking="best-effort", rdcc_nbytes=CACHE), attrs, (*groups, "checkpoint"))
        cache = file.id.get_mdc_config()              # else it grows with the rounds, to 32 MB
        cache.min_size = cache.initial_size = cache.max_size = 1 << 19
        file.id.set_mdc_config(cache)
        yield file
        if force:
            synchronise(place)


def describe(stored: Dataset, meaning: Column) -> None:
    stored.attrs["units"], stored.attrs["description"] = text(meaning.unit), text(meaning.description)


def dataset(group: Group, name: str, shape: tuple[int, ...], dtype: Any, axes: Sequence[Dataset], meaning: Column,
            **layout: Any) -> Dataset:
    """A new dataset with units, description and a dimension scale on each axis; one stored in chunks can grow."""
    if "/" in name or name in group:
        raise ValueError(f"{name!r} cannot be the name of a column")
    if "chunks" in layout:
        layout["maxshape"] = (None,) * len(shape)
    stored = group.create_dataset(name, shape, dtype, **layout)
    describe(stored, meaning)
    for k, axis in enumerate(axes):
        stored.dims[k].attach_scale(axis)
    return stored


def append(column: Dataset, first: int, values: NDArray[Any]) -> None:
    column.resize((first + len(values),))
    column[first:] = values


def pieces(shape: Sequence[int], chunks: Sequence[int]) -> int:
    """Number of chunks that hold an array."""
    return math.prod(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))


def scale(group: Group, name: str, length: int) -> Dataset:
    """A dimension with the coordinates 0, 1, 2 …"""
    if name not in group:
        dataset(group, name, (length,), np.int64, (), SCALES[name])[...] = np.arange(length)
        group[name].make_scale(name)
    return group[name]


def dimension(group: Group, name: str, length: int) -> Dataset:
    """A dimension without coordinates, as netCDF has them: nothing is stored but its length."""
    if name not in group:
        layout = {} if length else {"chunks": (256,)}
        made = dataset(group, name, (length,), ">f4", (), SCALES[name], **layout)
        made.make_scale(NO_COORDINATE.decode() + f"{length:10d}")
    return group[name]


def reserve(file: Any, size: int) -> None:
    """Let a file on disk reach ``size`` bytes further, before what is going to lie there is written.

    HDF5 writes the end of the file after everything else: a process killed in between would leave columns that
    point behind the end and cannot be read. The dataset has no name, so it is gone with its last handle, and its
    last byte is written so that the file is never shorter than it says. Nothing may be waiting to be written:
    HDF5 gives chunks their place only then. OSError where the disk has no room; HDF5 itself would break down.
    """
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space, kind = h5py.h5s.create_simple((size,)), h5py.h5t.NATIVE_UINT8
    spare = h5py.Dataset(h5py.h5d.create(file.id, None, kind, space, plan))
    try:
        if file.id.get_access_plist().get_driver() == h5py.h5fd.SEC2:
            os.posix_fallocate(file.id.get_vfd_handle(), spare.id.get_offset(), size)
        spare[-1] = 0
        file.flush()
    finally:
        spare.id.close()


def mend(path: str | os.PathLike[str]) -> None:
    """Make a file readable that was killed between two steps of HDF5: it cuts free space off before it says so.

    The file then names an end behind its real one; what is missing is free space, so the file may be as long as it says.
    OSError where it cannot be written.
    """
    with open(path, "rb") as file:
        head = file.read(48)
    missing = int.from_bytes(head[40:48], "little") - os.path.getsize(path)
    if head[:9] == b"\x89HDF\r\n\x1a\n\0" and 0 < missing <= LONGEST_CUT:
        os.truncate(path, os.path.getsize(path) + missing)


def put(group: h5py.Group, name: str, values: Array, axes: Sequence[h5py.Dataset], meaning: Column) -> None:
    """A dataset that holds ``values``, or new values for it."""
    if name not in group:
        kind = values.dtype.kind
        dtype = h5py.string_dtype() if kind in "UO" else np.int64 if meaning.integer and kind in "iub" else values.dtype
        dataset(group, name, values.shape, dtype, axes, meaning)
    group[name][...] = values.astype(object) if values.dtype.kind == "U" else values
