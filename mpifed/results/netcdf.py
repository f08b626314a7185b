"""HDF5 datasets in the form of netCDF: with dimensions, units and a description, so that xarray reads them."""

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mpifed.core.errors import RunError, reason
from mpifed.core.files import open_file, replace_file, sync_to_disk
from mpifed.core.hdf5 import NO_COORDINATE
from mpifed.core.typing import Array
from mpifed.results.columns import SCALES, ColumnInfo
from mpifed.results.crash_safe_file import CrashSafeFile

SAFE = "the rounds in it are safe, and resume continues"
LONGEST_CUT = 1 << 22  # maximum bytes that HDF5 cuts off a file before it stores the new length
CACHE = 1 << 14  # bytes of a column that HDF5 keeps in memory
METADATA_CACHE = 1 << 16  # bytes of trees of chunks, counted as in the file; in memory a tree takes nine times as much

H5Group = Any  # h5py.Group
H5Dataset = Any  # h5py.Dataset


def storable_text(value: str) -> str:
    """Return ``value`` without NUL characters and undecodable bytes of a command line, which HDF5 cannot store."""
    return value.replace("\0", "").encode("utf-8", "replace").decode()


def storable_attribute(value: Any) -> Any:
    """Return ``value`` as an attribute of HDF5."""
    return storable_text(value) if isinstance(value, str) else value


def begin(file: H5Group, attrs: Mapping[str, Any], groups: Sequence[str]) -> H5Group:
    """Write root attributes and groups into a new file: all links are made before there are data to lose."""
    try:
        for name, value in attrs.items():
            if value is not None:
                file.attrs[name] = storable_attribute(value)
        for name in groups:
            file.create_group(name)
        file.flush()
    except BaseException:
        # Left open, HDF5 would write the file at the exit of Python, and crash.
        file.close()
        raise
    return file


def write_priority(offset: int, content: bytes) -> tuple[int, int]:
    """Return the sort key of a waiting write: the superblock first, then trees from root to leaf, then the rest."""
    # The superblock names the end of the file, and readers refuse addresses behind it. When a leaf is full, half of
    # its entries move to a new leaf, which lies behind the old end and is there already: the parent must name it before
    # the old leaf loses them, so that for an instant chunks are found twice and never not at all. Headers come last,
    # with the new lengths of datasets, when all that they count can be found. Byte 5 is the level of a node.
    if offset == 0:
        return -256, 0
    node = content[:4] == b"TREE" and len(content) > 5
    return (-content[5], offset) if node else (1, offset)


class GrowingFile:
    """An HDF5 file that is being written, on disk or, without ``disk``, in memory. RunError where writing fails.

    ``name`` is the user's name of the file.
    """

    def __init__(self, file: h5py.File, disk: CrashSafeFile | None = None, name: str = "") -> None:
        self.file = file
        self.disk = disk
        self.name = name
        self.full = False  # the disk is full: reserve no more room
        self.has_failed = False  # the disk has refused a change
        self.safe = False  # rounds are stored, here or in the file that this one will replace

    def flush(self, lasting: bool = False) -> None:
        """Write the buffers of HDF5; with ``lasting``, wait until they survive a crash of the machine."""
        self.file.flush()
        if lasting and self.disk is not None:
            self.disk.synchronise()
        if self.disk is not None and self.disk.error is not None:
            raise self._error("cannot be written", self.disk.error, "after them")

    def reserve(self, size: int) -> None:
        """Allocate ``size`` bytes before HDF5 needs them, because HDF5 does not survive a full disk."""
        if self.disk is None or self.full:
            return
        try:
            self.disk.reserve(size)
        except OSError as error:
            raise self._error("cannot grow", error, "once there is room") from None

    def _error(self, what: str, error: OSError, when: str) -> RunError:
        """Return the exception for an error of the disk."""
        self.has_failed = True
        if self.disk is not None and self.disk.find_damage():
            return RunError(
                f"{self.name} was {self.disk.damage} while the run wrote to it: run it again with another -o"
            )
        if not self.safe:
            return RunError(f"{self.name} cannot be written: {reason(error)}")
        return RunError(f"{self.name} {what}: {reason(error)}; {SAFE} {when}")

    def change_atomically(self, precious: bool = True) -> AbstractContextManager[None]:
        """Make the changes of this context visible to readers all at once, even if the process is killed.

        ``precious``: they survive a crash of the machine too.
        """
        return nullcontext() if self.disk is None else self.disk.change_atomically(self.file.flush, precious)

    def describe_fate(self) -> str:
        """Return the fate of the file: "moved to …", "removed" …; empty where it is in its place or in memory."""
        return "" if self.disk is None or not self.disk.public else self.disk.describe_fate()

    def close(self) -> None:
        if self.disk is not None:
            self.file.close()
            self.disk.close()


@contextmanager
def create_file(
    path: str | os.PathLike[str] | None, force: bool, attrs: Mapping[str, Any], groups: Sequence[str]
) -> Iterator[GrowingFile]:
    """Create a result file with root attributes and groups, in memory where ``path`` is None.

    It gets its name, or replaces another file with ``force``, when the context ends. Where that fails it is closed:
    HDF5 would write it at the exit of Python, and crash.
    """
    if path is None:
        file = h5py.File(f"mpifed-{uuid.uuid4()}", "w", driver="core", backing_store=False)
        yield GrowingFile(begin(file, attrs, groups))
        return
    with ExitStack() as where_it_fails:
        with replace_file(path, force) as part:
            disk = CrashSafeFile(part, write_priority)
            file = begin(h5py.File(disk, "w", fs_strategy="none", rdcc_nbytes=CACHE), attrs, (*groups, "checkpoint"))
            growing = GrowingFile(file, disk, os.fspath(path))
            where_it_fails.callback(growing.close)
            # By default the cache grows with the rounds, up to 32 MB on rank 0, whose memory clients need.
            cache = file.id.get_mdc_config()
            cache.min_size = cache.initial_size = cache.max_size = METADATA_CACHE
            file.id.set_mdc_config(cache)
            yield growing
            growing.flush()
            if force:
                sync_to_disk(part)
        where_it_fails.pop_all()
    disk.publish(Path(os.path.realpath(path)))


def create_dataset(
    group: H5Group,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    axes: Sequence[H5Dataset],
    meaning: ColumnInfo,
    **layout: Any,
) -> H5Dataset:
    """Create a dataset with units, description, its samples, and a dimension scale on each axis.

    With ``chunks`` it can grow.
    """
    if "/" in name or name in group:
        raise ValueError(f"{name!r} cannot be the name of a column")
    if "chunks" in layout:
        layout.setdefault("maxshape", (None,) * len(shape))
    stored = group.create_dataset(name, shape, dtype, **layout)
    stored.attrs["units"] = storable_text(meaning.unit)
    stored.attrs["description"] = storable_text(meaning.description)
    stored.attrs.update(meaning.sample_attrs)
    for k, axis in enumerate(axes):
        stored.dims[k].attach_scale(axis)
    return stored


def to_number_array(values: Sequence[float], integer: bool) -> Array:
    """Return values as int64 where the column is of integers and all are whole and below 2⁶³, else as float64."""
    array = np.array(values)
    if array.dtype.kind not in "iub":
        # Python integers beyond 64 bits make an array of objects.
        array = array.astype(np.float64)
    exact = integer and (np.abs(array) < 2.0**63).all() and (array == np.floor(array)).all()
    return array.astype(np.int64 if exact else np.float64)


def append_values(column: H5Dataset, first: int, values: Array) -> None:
    column.resize((first + len(values),))
    column[first:] = values


def count_chunks(shape: Sequence[int], chunks: Sequence[int]) -> int:
    return int(np.prod(-(-np.array(shape) // chunks)))


def require_scale(group: H5Group, name: str, length: int) -> H5Dataset:
    """Create a dimension with the coordinates 0, 1, 2 …, or return the existing one."""
    if name not in group:
        create_dataset(group, name, (length,), np.int64, (), SCALES[name])[...] = np.arange(length)
        group[name].make_scale(name)
    return group[name]


def require_dimension(group: H5Group, name: str, length: int) -> H5Dataset:
    """Create a dimension without coordinates, which stores its length alone, or return the existing one."""
    if name not in group:
        layout = {} if length else {"chunks": (256,)}
        stored = create_dataset(group, name, (length,), ">f4", (), SCALES[name], **layout)
        stored.make_scale(NO_COORDINATE.decode() + f"{length:10d}")
    return group[name]


def repair_length(path: str | os.PathLike[str]) -> None:
    """Repair a file whose writer was killed after HDF5 cut off free space and before it stored the new length.

    The superblock then names an end behind the real one. Only free space is missing, so the file is extended to that
    length. OSError where it cannot be written.
    """
    with open_file(path) as file:
        head = file.read(48)
    missing = int.from_bytes(head[40:48], "little") - os.path.getsize(path)
    if head[:9] == b"\x89HDF\r\n\x1a\n\0" and 0 < missing <= LONGEST_CUT:
        os.truncate(path, os.path.getsize(path) + missing)


def write_dataset(
    group: h5py.Group, name: str, values: Array, axes: Sequence[h5py.Dataset], meaning: ColumnInfo
) -> None:
    """Create a dataset of ``values``, or replace the values of the existing one."""
    if name not in group:
        dtype: Any = values.dtype
        if dtype.kind in "UO":
            dtype = h5py.string_dtype()
        elif dtype.kind in "iub" and meaning.integer:
            dtype = np.int64
        create_dataset(group, name, values.shape, dtype, axes, meaning)
    group[name][...] = values.astype(object) if values.dtype.kind == "U" else values
