"""Every dataset has units and named axes, as netCDF has them, and xarray opens every group."""

import h5py
import numpy as np
import xarray

from mpifed.results.columns import COLUMNS
from mpifed.results.recorder import Recorder
from tests.results.conftest import ATTRS

SIZES = {
    "/": {"round": 3, "slot": 2},
    "rounds": {"round": 3},
    "ranks": {"rank": 2},
    "clients": {"client": 4},
    "model": {"client": 4, "parameter": 7},
    "models": {"round": 2, "parameter": 7},
}


def test_every_dataset_has_units_a_description_and_named_axes_and_xarray_opens_every_group(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for k in range(3):
            recorder.row(dict.fromkeys(COLUMNS, k), np.array([1, 3]))
            recorder.snapshot(np.full(7, float(k)), 2)
        recorder.ranks({"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.clients({"samples": [5, 5, 5, 5], "own": [1, 2, 3, 4]})
        recorder.model(np.zeros(7), np.zeros((4, 7)))
    seen = set()

    def check(name, item):
        if isinstance(item, h5py.Dataset):
            assert item.attrs["units"], name
            assert item.attrs["description"].endswith("."), name
            assert item.is_scale or all(len(axis) == 1 for axis in item.dims), name
            seen.add(name)

    with h5py.File(path) as file:
        file.visititems(check)
    assert {"selection", "model/x", "model/personal", "ranks/hostname", "clients/own"} <= seen
    data = {group: xarray.load_dataset(path, group=group, engine="h5netcdf") for group in SIZES}
    assert {group: dict(found.sizes) for group, found in data.items()} == SIZES
    assert data["/"].attrs["status"] == "finished"
    assert data["/"]["selection"].values.tolist() == [[-1, -1], [1, 3], [1, 3]]
    elapsed = data["rounds"]["elapsed_seconds"]
    assert (elapsed.dtype, elapsed.attrs["units"]) == (np.float64, "s")  # and no time difference
    assert data["rounds"]["round"].values.tolist() == [0, 1, 2]
    models = data["models"]["x"]
    assert (models.dims, models.attrs["units"]) == (("round", "parameter"), "1")
    assert models.sel(round=2).values.tolist() == [2.0] * 7
