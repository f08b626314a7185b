"""Safe reading of HDF5 files from any source: links are not followed and declared sizes are checked."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.files import open_file
from mpifed.core.memory import check_declared, check_memory, size_of
from mpifed.core.typing import Array

HEAP, OBJECT = b"GCOL\x01\0\0\0", struct.Struct("<H6xQ")
BLOCK = 1 << 20  # bytes of a file that are searched at a time

NO_COORDINATE = b"This is a netCDF dimension but not a netCDF variable."  # how netCDF marks a dimension that is no data


def datasets(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Names and datasets of a group; UserError with ``path`` where data are stored outside the file."""
    for name in map(os.fsdecode, group):
        found = entry(group, name, path)
        if is_array(found):
            yield name, found


def is_array(found: Any) -> bool:
    """Whether it is a dataset, and not a group, nothing, or a dataset that HDF5 calls null, which has no shape."""
    import h5py

    return isinstance(found, h5py.Dataset) and found.shape is not None


def is_dimension(found: Any) -> bool:
    """Return whether a dataset is a dimension of others, and no data."""
    import h5py

    scales = h5py.h5ds
    return bool(scales.is_scale(found.id) and scales.get_scale_name(found.id).startswith(NO_COORDINATE))


def entry(group: Any, name: str, path: str) -> Any:
    """The dataset or group called ``name``, or None. UserError for links, which may lead to any file."""
    import h5py

    # A file from elsewhere could otherwise show us, or copy into a result, any file that this user may read.
    key = os.fsencode(name)
    if not group.id.links.exists(key):
        return None
    if group.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
        raise UserError(f"{name} of {path} is a link: copy the data into the file itself")
    found = group[key]
    if is_array(found):
        if found.is_virtual or found.external:
            raise UserError(f"{name} of {path} lies in other files: copy the data into the file itself")
        try:
            size = size_of(found.shape, found.dtype.itemsize)
        except TypeError:
            wrong = f"{name} of {path} has a type that numpy does not know"
            raise UserError(f"{wrong}: it must be an array of numbers") from None
        stored = found.id.get_storage_size()
        # a dimension of a large model stores its length alone, and nobody reads it
        if stored or not is_dimension(found):
            check_declared(size, stored, f"{name} of {path}")
    return found


def values(dataset: Any, what: str) -> Array:
    """A whole dataset, texts as str; UserError where there is not enough memory for ``what``."""
    import h5py

    check_memory(size_of(dataset.shape, dataset.dtype.itemsize), what)
    return np.asarray(dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else dataset[()])


def check_heaps(path: str | Path) -> int:
    """The bytes of the longest text in the heaps of a file.

    Raises ValueError where one is damaged: the HDF5 library would never stop reading it.

    A heap is "GCOL", a version, its length, then objects: number (0: the rest is free), references, length, content.
    Source: HDF5 File Format Specification, III.E.
    """
    longest = 0
    # read, not mapped: a mapped file that its writer shortens ends this process
    with open_file(path) as file:
        for start in heaps(file.fileno()):
            file.seek(start + 8)
            head = file.read(8)
            offset = start + 16
            end = start + int.from_bytes(head, "little")
            while offset + OBJECT.size <= end:
                file.seek(offset)
                entry = file.read(OBJECT.size)
                if len(entry) < OBJECT.size:  # the file ends here, by now
                    break
                number, length = OBJECT.unpack(entry)
                step = OBJECT.size + -(-length // 8) * 8 if number else length
                if step < OBJECT.size or offset + step > end:
                    raise ValueError("a heap is damaged")
                offset += step
                longest = max(longest, length if number else 0)
    return longest


def heaps(file: int) -> Iterator[int]:
    """Where in an open file the first bytes of a heap are."""
    first = 0
    block = os.pread(file, BLOCK, first)
    while len(block) >= len(HEAP):
        found = block.find(HEAP)
        while found >= 0:
            yield first + found
            found = block.find(HEAP, found + len(HEAP))
        first += len(block) - len(HEAP) + 1  # what the end of a block cuts in two is found in the next one
        block = os.pread(file, BLOCK, first)
