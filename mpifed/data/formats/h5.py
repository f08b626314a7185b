"""Arrays in HDF5 files, read by rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.hdf5 import check_heaps, datasets
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import Reader, Stored


class H5Array(Stored):
    """A dataset of an HDF5 file."""

    kind = "HDF5"

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        if self.dtype.kind == "U":
            check_heaps(self.path)
        with h5py.File(self.path, "r", locking="best-effort") as file:
            dataset = file[self.name]

            def rows(lo: int, hi: int) -> Array:
                self.check_memory(hi - lo)
                if self.dtype.kind == "U":
                    return np.asarray(dataset.asstr()[lo:hi], dtype=str)
                return dataset[lo:hi]

            yield rows


def open_h5(path: Path) -> dict[str, Any]:
    """The arrays in the root group of an HDF5 file."""
    import h5py

    found = {}
    with h5py.File(path, "r", locking="best-effort") as file:
        for name, entry in datasets(file, str(path)):
            about = h5py.check_string_dtype(entry.dtype)
            text = about is not None and about.length is None  # strings of any length are text in numpy, too
            found[name] = H5Array(path, name, entry.shape, np.dtype(str if text else entry.dtype))
    return found
