"""Recorders, in memory and in a file, and rows for them."""

import os
import zlib

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


class Images:
    """The file as it was after every change on the disk, which is what a kill finds, with ``done`` at that time."""

    def __init__(self, path, monkeypatch):
        self.path = path
        self.done = 0
        self.taken = {}
        for name in ("pwrite", "ftruncate", "posix_fallocate", "replace", "link"):
            monkeypatch.setattr(os, name, self.watched(getattr(os, name)))

    def watched(self, change):
        def call(*words):
            result = change(*words)
            if self.path.exists():
                self.taken[zlib.compress(self.path.read_bytes(), 1)] = self.done
            return result

        return call

    def files(self):
        """A copy of each, with its ``done``."""
        copy = self.path.with_name("copy.h5")
        for image, done in self.taken.items():
            copy.write_bytes(zlib.decompress(image))
            yield copy, done


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
