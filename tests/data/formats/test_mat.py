"""MATLAB files."""

import h5py

from tests.helpers.data_files import X, refused


def test_matlab_7_3_is_refused_with_the_way_out(tmp_path):
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        file["X"] = X
    with (tmp_path / "x.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    refused(tmp_path / "x.mat", r"x\.mat is a MATLAB 7\.3 file: save it with -v7")
