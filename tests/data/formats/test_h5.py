"""HDF5 files."""

from __future__ import annotations

import h5py
import numpy as np

from tests.helpers.data_files import DENSE, load, refused, write


def test_hdf5_reads_only_the_rows_asked_for(tmp_path, monkeypatch):
    dataset, asked = load(write(tmp_path / "fed.h5", DENSE)), []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, at: asked.append((self.name, at)) or read(self, at))
    dataset.rows(1, 3)
    assert asked == [("/X", slice(2, 6))]


def test_text_in_x_and_groups_in_hdf5_are_refused(tmp_path):
    for text in (np.full((10, 2), b"cat", dtype="S3"), np.full((10, 2), "cat", dtype=object)):
        with h5py.File(tmp_path / "text.h5", "w") as file:
            file["X"], file["y"] = text, np.zeros(10)
        refused(tmp_path / "text.h5", "X of .*text.h5 has the type")
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file.create_group("X")
    refused(tmp_path / "group.h5", "group.h5 has no X")


def test_a_heap_of_labels_without_an_end_is_refused(tmp_path):
    """The HDF5 library would go over an empty entry of the free space for ever."""
    path = tmp_path / "words.h5"
    with h5py.File(path, "w") as file:
        file["X"], file["sizes"], file["y"] = np.zeros((4, 2)), [2, 2], ["cat", "dog"] * 2
    content = bytearray(path.read_bytes())
    entry = content.index(b"GCOL") + 16
    while int.from_bytes(content[entry : entry + 2], "little"):
        entry += 16 + -(-int.from_bytes(content[entry + 8 : entry + 16], "little") // 8) * 8
    content[entry + 8 : entry + 16] = bytes(8)
    path.write_bytes(content)
    refused(path, "words.h5 cannot be read as HDF5: it is damaged or of another format .a heap is damaged.")
