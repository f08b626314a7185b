"""NPZ files."""

import zipfile

import numpy as np

from tests.helpers.data_files import DENSE, X, load, refused, write


def test_columns_first_arrays_of_npz_are_read_right(tmp_path):
    dataset = load(write(tmp_path / "fed.npz", {**DENSE, "X": np.asfortranarray(X)}))
    assert np.array_equal(dataset.rows(1, 3)[0], X[2:6])


def test_a_member_cut_short_inside_an_npz_is_named(tmp_path):
    path = write(tmp_path / "fed.npz", DENSE)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:-100] if name == "X.npy" else content)
    refused(path, r"X of .*fed\.npz declares the shape \(10, 6\) of float64, 480 bytes, but holds 380")
