"""Every dataset has units and named axes, as netCDF has them."""

import h5py
import numpy as np
import xarray

from mpifed.results.columns import COLUMNS
from mpifed.results.recorder import Recorder
from tests.results.conftest import ATTRS, row


def test_every_dataset_has_units_a_description_and_named_axes(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for _ in range(3):
            recorder.row(dict.fromkeys(COLUMNS, 1), np.array([1]))
        recorder.ranks({"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.clients({"samples": [5, 5, 5, 5], "own": [1, 2, 3, 4]})
        recorder.model(np.zeros(7), np.zeros((4, 7)))

    def check(name, item):
        if isinstance(item, h5py.Dataset):
            assert item.attrs["units"], name
            assert item.attrs["description"].endswith("."), name
            if not item.is_scale:
                assert all(len(axis) == 1 for axis in item.dims), name
            seen.append(name)

    seen: list[str] = []
    with h5py.File(path) as file:
        file.visititems(check)
    assert {"selection", "model/x", "model/personal", "ranks/hostname", "clients/own"} <= set(seen)


def test_xarray_opens_every_group(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for k in range(3):
            recorder.row(row(k), np.array([1, 3]))
        recorder.ranks({"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.clients({"samples": [5, 5, 5, 5]})
        recorder.model(np.zeros(7), np.zeros((4, 7)))
    sizes = {"/": {"round": 3, "slot": 2}, "rounds": {"round": 3}, "ranks": {"rank": 2}}
    sizes |= {"clients": {"client": 4}, "model": {"client": 4, "parameter": 7}}
    for group, expected in sizes.items():
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as data:
            assert dict(data.sizes) == expected
            data.load()
    with xarray.open_dataset(path, group="rounds", engine="h5netcdf") as data:
        assert data["elapsed_seconds"].dtype == np.float64  # and no time difference
        assert data["round"].values.tolist() == [0, 1, 2]
        assert data["elapsed_seconds"].attrs["units"] == "s"
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.attrs["status"] == "finished"
        assert data["selection"].values.tolist() == [[-1, -1], [1, 3], [1, 3]]
