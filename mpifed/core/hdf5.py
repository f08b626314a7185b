"""Safe reading of HDF5 files from any source: links are not followed, and declared sizes are checked."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.files import open_file
from mpifed.core.memory import bytes_of_shape, check_declared_size, check_memory
from mpifed.core.typing import Array

HEAP, OBJECT = b"GCOL\x01\0\0\0", struct.Struct("<H6xQ")
BLOCK = 1 << 20  # bytes of a file searched at a time

NO_COORDINATE = b"This is a netCDF dimension but not a netCDF variable."  # netCDF's mark of a dimension without data


def iterate_datasets(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and datasets of a group; UserError with ``path`` if data are stored outside the file."""
    for name in map(os.fsdecode, group):
        item = get_entry(group, name, path)
        if is_dataset(item):
            yield name, item


def is_dataset(item: Any) -> bool:
    """Return whether an object is a dataset with a shape, and not a group, None, or a null dataset of HDF5."""
    import h5py

    return isinstance(item, h5py.Dataset) and item.shape is not None


def is_dimension(dataset: Any) -> bool:
    """Return whether a dataset is only a dimension of others, without data."""
    import h5py

    scales = h5py.h5ds
    return bool(scales.is_scale(dataset.id) and scales.get_scale_name(dataset.id).startswith(NO_COORDINATE))


def get_entry(group: Any, name: str, path: str) -> Any:
    """Return the dataset or group called ``name``, or None. UserError for links, which may lead to any file."""
    import h5py

    # A link in a file from elsewhere could show, or copy into a result, any file that this user may read.
    key = os.fsencode(name)
    if not group.id.links.exists(key):
        return None
    if group.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
        raise UserError(f"{name} of {path} is a link: copy the data into the file itself")
    item = group[key]
    if is_dataset(item):
        if item.is_virtual or item.external:
            raise UserError(f"{name} of {path} lies in other files: copy the data into the file itself")
        try:
            size = bytes_of_shape(item.shape, item.dtype.itemsize)
        except TypeError:
            wrong = f"{name} of {path} has a type that numpy does not know"
            raise UserError(f"{wrong}: it must be an array of numbers") from None
        stored = item.id.get_storage_size()
        # a dimension of a large model stores only its length, and nobody reads it
        if stored or not is_dimension(item):
            check_declared_size(size, stored, f"{name} of {path}")
    return item


def read_dataset(dataset: Any, what: str) -> Array:
    """Read a whole dataset, texts as str; UserError if there is not enough memory for ``what``."""
    import h5py

    check_memory(bytes_of_shape(dataset.shape, dataset.dtype.itemsize), what)
    return np.asarray(dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else dataset[()])


def check_heaps(path: str | Path) -> int:
    """Check the heaps of a file, which hold its texts, and return the bytes of the longest text.

    ValueError if one is damaged, because the HDF5 library would read it without end.

    A heap is "GCOL", a version, its length, then objects: number (0: the rest is free), references, length, content.
    Source: HDF5 File Format Specification, III.E.
    """
    longest = 0
    # read and not mapped, because a mapped file that its writer shortens ends this process
    with open_file(path) as file:
        for start in find_heaps(file.fileno()):
            file.seek(start + 8)
            head = file.read(8)
            offset = start + 16
            end = start + int.from_bytes(head, "little")
            while offset + OBJECT.size <= end:
                file.seek(offset)
                entry = file.read(OBJECT.size)
                if len(entry) < OBJECT.size:  # the file has become shorter
                    break
                number, length = OBJECT.unpack(entry)
                step = OBJECT.size + -(-length // 8) * 8 if number else length
                if step < OBJECT.size or offset + step > end:
                    raise ValueError("a heap is damaged")
                offset += step
                longest = max(longest, length if number else 0)
    return longest


def find_heaps(file: int) -> Iterator[int]:
    """Yield the positions in an open file at which a heap may begin."""
    first = 0
    block = os.pread(file, BLOCK, first)
    while len(block) >= len(HEAP):
        position = block.find(HEAP)
        while position >= 0:
            yield first + position
            position = block.find(HEAP, position + len(HEAP))
        first += len(block) - len(HEAP) + 1  # a heap cut in two by the end of a block is found in the next one
        block = os.pread(file, BLOCK, first)
