"""Recorders, in memory and in a file, and rows for them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from mpifed.results.recorder import Recorder

ATTRS = {"config": "seed = 3\n", "seed": 3, "ranks": 2, "mpi_library": "none"}


def row(k):
    return {"objective": 1 / (k + 1), "uploads": 4 * k, "elapsed_seconds": 0.1 * k}


def written(path, rows=5, **options):
    """A finished file of ``rows`` rounds in each of which clients 0 and 2 of 4 are chosen."""
    with Recorder(path, ATTRS, 4, **options) as recorder:
        for k in range(rows):
            recorder.row(row(k), np.array([0, 2]))
        recorder.finish("finished", "rounds: 4")
    return recorder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.h5"


@pytest.fixture
def memory():
    return Recorder(None, ATTRS, 4)


def examine(path, done):
    """A file that a kill left: HDF5 opens it, and it has the rounds that were flushed."""
    with h5py.File(path) as file:  # the lock died with its owner
        assert dict(file.attrs)["format"] == "mpifed-result"
        numbers = file["rounds/round"][:]
        whole = np.count_nonzero(numbers == np.arange(len(numbers)))
        assert whole >= done
        for name in ("objective", "uploads", "compute_seconds") if whole else ():
            assert np.array_equal(file["rounds"][name][:whole], np.arange(whole)), name
        assert whole <= 1 or len(file["selection"][:]) >= whole
        file.visititems(lambda _, item: (dict(item.attrs), item[()] if isinstance(item, h5py.Dataset) else None))
    return whole
