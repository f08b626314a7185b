"""Heaps of an HDF5 file are found wherever they lie, also while another process changes the file."""

import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest

from mpifed.core import hdf5
from mpifed.core.errors import UserError
from mpifed.core.hdf5 import check_heaps, get_entry
from mpifed.results.netcdf import require_dimension
from tests.helpers.commands import execute

CHANGING = """
import os, sys
content = open(sys.argv[1], "rb").read()
print("begins", flush=True)
with open(sys.argv[1], "r+b", buffering=0) as file:
    while True:
        file.truncate(5000)
        file.seek(0)
        file.write(content)
"""
READING = """
import sys, time
from contextlib import suppress
from mpifed.core.hdf5 import check_heaps
end, reads = time.monotonic() + 0.5, 0
while time.monotonic() < end:
    with suppress(ValueError):
        check_heaps(sys.argv[1])
    reads += 1
print("still here" if reads else "never read")
"""


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "texts.h5", "w") as file:
        file["y"] = [f"label {k}" for k in range(20_000)]
    return tmp_path / "texts.h5"


@pytest.mark.parametrize("block", [40, 1000, 1 << 20])
def test_every_heap_is_found(block, path, monkeypatch):
    monkeypatch.setattr(hdf5, "BLOCK", block)
    assert check_heaps(path) == len("label 19999")
    content = bytearray(path.read_bytes())
    last = content.rfind(hdf5.HEAP)
    struct.pack_into("<Q", content, last + 16 + 8, 1 << 40)  # the length of its first object
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a heap is damaged"):
        check_heaps(path)


def test_a_file_that_another_process_shortens_and_extends_does_not_end_this_one(path):
    with subprocess.Popen([sys.executable, "-c", CHANGING, path], stdout=subprocess.PIPE) as changing:
        try:
            assert changing.stdout.readline() == b"begins\n"
            assert execute([sys.executable, "-c", READING, path])[:2] == (0, "still here\n")
        finally:
            changing.kill()


def test_a_file_without_texts_has_no_heap(tmp_path):
    with h5py.File(tmp_path / "numbers.h5", "w") as file:
        file["X"] = np.zeros(3)
    assert check_heaps(tmp_path / "numbers.h5") == 0


def test_a_dimension_of_a_large_model_is_no_damage_and_data_that_are_not_there_are(tmp_path):
    """A result with more than 67 million parameters is read: its dimension has a length and no bytes."""
    with h5py.File(tmp_path / "large.h5", "w") as file:
        require_dimension(file, "parameter", 10**8)
        file.create_dataset("X", (10**8,), ">f4")
        assert get_entry(file, "parameter", "large.h5").shape == (10**8,)
        with pytest.raises(UserError, match=r"X of large\.h5 declares 400,000,000 bytes, but its 0 bytes"):
            get_entry(file, "X", "large.h5")
