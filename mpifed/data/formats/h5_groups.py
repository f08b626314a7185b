"""HDF5 files with a group for each client: /name/X and /name/y, for testing also X_test and y_test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.hdf5 import get_entry, iterate_datasets
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import H5Array, Reader, StoredArray, h5_array

OWNERS = "/"  # key of the names of the groups among the arrays: no array has this name


class StackedArray(StoredArray):
    """Arrays of one file, one below the other; rows are read from those that have them."""

    form = "HDF5"

    def __init__(self, parts: list[H5Array], name: str) -> None:
        first = parts[0]
        for part in parts:
            if part.shape[1:] != first.shape[1:] or len(part.shape) != len(first.shape):
                raise UserError(
                    f"{part.name} of {part.path} has the shape {part.shape}, but {first.name} has {first.shape}: "
                    "they differ in the number of rows alone"
                )
        self.parts = parts
        self.starts = row_offsets(np.array([part.shape[0] for part in parts]))
        shape = (int(self.starts[-1]), *first.shape[1:])
        super().__init__(first.path, name, shape, np.result_type(*{part.dtype for part in parts}))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file:

            def rows(lo: int, hi: int) -> Array:
                self.check_memory(hi - lo)
                # Parts without rows make starts equal. side="right" for lo: the last of the parts that begin there
                # has the row; side="left" for hi: no part that begins there.
                first = int(np.searchsorted(self.starts, lo, side="right")) - 1
                last = int(np.searchsorted(self.starts, hi, side="left"))
                pieces = [np.zeros((0, *self.shape[1:]), self.dtype)]
                for k in range(max(0, first), min(last, len(self.parts))):
                    begin = int(self.starts[k])
                    with self.parts[k].within(file) as read:
                        pieces.append(read(max(lo - begin, 0), min(hi - begin, self.parts[k].shape[0])))
                return np.concatenate(pieces)

            yield rows


def read_groups(path: Path, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the arrays of a file whose groups are clients, in the order of their names; none if it has no groups.

    ``more``: names of arrays with a number for each sample. Raises UserError where a group lacks X, y or one of these,
    or some of the arrays for testing.
    """
    import h5py

    training = ("X", "y", *more)
    names = (*training, *(f"{key}_test" for key in training))
    groups: dict[str, dict[str, H5Array]] = {}
    with h5py.File(path, "r", locking="best-effort") as file:
        for name in (name for name in file if name[0] != "#"):  # "#…" are MATLAB's own, beside variables
            group = get_entry(file, name, str(path))
            if isinstance(group, h5py.Group):
                arrays = {
                    key: h5_array(path, f"{name}/{key}", data) for key, data in iterate_datasets(group, str(path))
                }
                groups[name] = {key: array for key, array in arrays.items() if key in names}
    # If groups hold other things they are no clients; an error then says that the file has no arrays.
    return stack_groups(path, groups, training) if any(groups.values()) else {}


def stack_groups(path: Path, groups: dict[str, dict[str, H5Array]], training: tuple[str, ...]) -> dict[str, Any]:
    """Return the arrays of all groups, one below the other, and sizes; UserError where a group lacks an array."""
    names = (*training, *(f"{key}_test" for key in training))
    tested = [name for name, arrays in groups.items() if "X_test" in arrays or "y_test" in arrays]
    for name, arrays in groups.items():
        missing = [key for key in (names if name in tested else training) if key not in arrays]
        if missing:
            needs = f"{', '.join(training[:-1])} and {training[-1]}"
            raise UserError(f"the group {name} of {path} has no {missing[0]}: each group is a client with {needs}")
        for key, array in arrays.items():
            if not array.shape:
                raise UserError(f"{array.name} of {path} is one number: {key} has a row for each sample")
    result: dict[str, Any] = {OWNERS: tuple(groups)}
    for part in ("", "_test") if tested else ("",):
        members = [groups[name] for name in groups if not part or name in tested]
        for key in (f"{key}{part}" for key in training):
            result[key] = StackedArray([arrays[key] for arrays in members], key)
        sizes = {name: arrays[f"y{part}"].shape[0] for name, arrays in groups.items() if f"y{part}" in arrays}
        result[f"sizes{part}"] = np.array([sizes.get(name, 0) for name in groups])
    return result
