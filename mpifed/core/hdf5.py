"""Reading HDF5 files that anybody may have made: no links, no sizes that are not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import declared, room, size_of
from mpifed.core.typing import Array


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
            raise UserError(
                f"{name} of {path} has a type that numpy does not know: it must be an array of numbers"
            ) from None
        declared(size, found.id.get_storage_size(), f"{name} of {path}")
    return found


def values(dataset: Any, what: str) -> Array:
    """A whole dataset, texts as str; UserError where there is no memory for ``what``."""
    import h5py

    room(size_of(dataset.shape, dataset.dtype.itemsize), what)
    return np.asarray(dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else dataset[()])
