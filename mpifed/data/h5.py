"""Arrays in HDF5 files."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.component import UserError
from mpifed.data.clients import Array
from mpifed.data.memory import declared, room, size_of
from mpifed.data.stored import Reader, Stored


class H5Array(Stored):
    """A dataset of an HDF5 file."""

    kind = "HDF5"

    def __init__(self, path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, np.dtype(dtype)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file:
            dataset = file[self.name]

            def rows(lo: int, hi: int) -> Array:
                self.room(hi - lo)
                return dataset[lo:hi]

            yield rows


def open_h5(path: Path) -> dict[str, Any]:
    """The arrays at the root of an HDF5 file."""
    import h5py

    with h5py.File(path, "r", locking="best-effort") as file:
        return {name: H5Array(path, name, entry.shape, entry.dtype) for name, entry in datasets(file, str(path))}


def datasets(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The datasets of a group of an HDF5 file, which must lie in that file; UserError names ``path``."""
    import h5py

    for name in map(os.fsdecode, group):
        found = entry(group, name, path)
        if isinstance(found, h5py.Dataset) and found.shape is not None:
            yield name, found


def entry(group: Any, name: str, path: str) -> Any:
    """The dataset or group ``name`` of a group, or None; no link is followed, for it might lead anywhere."""
    import h5py

    key = os.fsencode(name)
    if not group.id.links.exists(key):
        return None
    if group.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
        raise UserError(f"{name} of {path} is a link: what is read must lie in the file itself")
    found = group[key]
    if isinstance(found, h5py.Dataset) and found.shape is not None:
        if found.is_virtual or found.external:
            raise UserError(f"{name} of {path} lies in other files: what is read must lie in the file itself")
        try:
            size = size_of(found.shape, found.dtype.itemsize)
        except TypeError:
            raise UserError(f"{name} of {path} has a type that numpy does not know: it must be an array of numbers") from None
        declared(size, found.id.get_storage_size(), f"{name} of {path}")
    return found


def values(dataset: Any, what: str) -> Array:
    """A whole dataset, texts as str; UserError where there is no memory for ``what``."""
    import h5py

    room(size_of(dataset.shape, dataset.dtype.itemsize), what)
    return np.asarray(dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else dataset[()])
