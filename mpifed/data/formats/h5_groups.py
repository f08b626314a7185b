"""HDF5 files with a group for each client: /name/X and /name/y, and X_test and y_test where there are test samples."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import H5Array, Reader, Stored, h5_array

OWNERS = "/"  # beside the arrays, the names of the groups: no array has this name


class Joined(Stored):
    """Arrays of one file, one below the other; rows are read from those that have them."""

    kind = "HDF5"

    def __init__(self, parts: list[H5Array], name: str) -> None:
        first = parts[0]
        for part in parts:
            if part.shape[1:] != first.shape[1:] or len(part.shape) != len(first.shape):
                raise UserError(
                    f"{part.name} of {part.path} has the shape {part.shape}, but {first.name} has {first.shape}: "
                    "they differ in the number of rows alone"
                )
        self.parts = parts
        self.starts = starts_of(np.array([part.shape[0] for part in parts]))
        shape = (int(self.starts[-1]), *first.shape[1:])
        super().__init__(first.path, name, shape, np.result_type(*{part.dtype for part in parts}))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file:

            def rows(lo: int, hi: int) -> Array:
                self.check_memory(hi - lo)
                # Parts without rows make starts equal. From the right for lo: the last of the parts that begin there
                # has the row; from the left for hi: no part that begins there.
                first = int(np.searchsorted(self.starts, lo, side="right")) - 1
                last = int(np.searchsorted(self.starts, hi, side="left"))
                found = [np.zeros((0, *self.shape[1:]), self.dtype)]
                for k in range(max(0, first), min(last, len(self.parts))):
                    begin = int(self.starts[k])
                    with self.parts[k].within(file) as own:
                        found.append(own(max(lo - begin, 0), min(hi - begin, self.parts[k].shape[0])))
                return np.concatenate(found)

            yield rows


def by_groups(path: Path, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arrays of a file whose groups are clients, in the order of their names; none where it has no groups.

    ``more``: arrays with a number for each sample. UserError where a group lacks X, y or one of these, or has test
    samples of a kind that others lack.
    """
    import h5py

    training = ("X", "y", *more)
    names = (*training, *(f"{key}_test" for key in training))
    found: dict[str, dict[str, H5Array]] = {}
    with h5py.File(path, "r", locking="best-effort") as file:
        for name in (name for name in file if name[0] != "#"):  # which begins what MATLAB keeps beside variables
            group = entry(file, name, str(path))
            if isinstance(group, h5py.Group):
                arrays = {key: h5_array(path, f"{name}/{key}", data) for key, data in datasets(group, str(path))}
                found[name] = {key: array for key, array in arrays.items() if key in names}
    # Groups of other things are no clients, and the file is then said to have no arrays.
    return joined_groups(path, found, training) if any(found.values()) else {}


def joined_groups(path: Path, found: dict[str, dict[str, H5Array]], training: tuple[str, ...]) -> dict[str, Any]:
    """The arrays of all groups one after the other, with the sizes of each; UserError where a group lacks some."""
    names = (*training, *(f"{key}_test" for key in training))
    tested = [name for name, arrays in found.items() if "X_test" in arrays or "y_test" in arrays]
    for name, arrays in found.items():
        lacking = [key for key in (names if name in tested else training) if key not in arrays]
        if lacking:
            listed = f"{', '.join(training[:-1])} and {training[-1]}"
            raise UserError(f"the group {name} of {path} has no {lacking[0]}: each group is a client with {listed}")
        for key, array in arrays.items():
            if not array.shape:
                raise UserError(f"{array.name} of {path} is one number: {key} has a row for each sample")
    joined: dict[str, Any] = {OWNERS: tuple(found)}
    for part in ("", "_test") if tested else ("",):
        own = [found[name] for name in found if not part or name in tested]
        joined |= {
            f"{key}{part}": Joined([arrays[f"{key}{part}"] for arrays in own], f"{key}{part}") for key in training
        }
        sizes = {name: arrays[f"y{part}"].shape[0] for name, arrays in found.items() if f"y{part}" in arrays}
        joined[f"sizes{part}"] = np.array([sizes.get(name, 0) for name in found])
    return joined
