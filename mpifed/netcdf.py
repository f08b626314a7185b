"""HDF5 datasets as netCDF has them: with dimensions, units and a description, so that xarray reads them too."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpifed.columns import SCALES, Column

NO_COORDINATE = b"This is a netCDF dimension but not a netCDF variable."  # how netCDF marks a dimension that is no data

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
