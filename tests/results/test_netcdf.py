"""Every column is written, with a unit, a sentence and named axes, as netCDF has them, and xarray opens every group."""

import h5py
import numpy as np
import xarray

import mpifed
from mpifed.experiment.config import override
from mpifed.results.columns import CLIENTS, COLUMNS, MEASURES, MODEL, RANKS, SCALES, SELECTION, UNKNOWN
from mpifed.results.recorder import Recorder
from tests.helpers.studies import STUDIES
from tests.results.conftest import ATTRS

SIZES = {
    "/": {"round": 3, "slot": 2},
    "rounds": {"round": 3},
    "ranks": {"rank": 2},
    "clients": {"client": 4, "stored_round": 1},
    "model": {"client": 4, "parameter": 7},
    "models": {"stored_round": 2, "parameter": 7},
}


def test_every_dataset_has_units_a_description_and_named_axes_and_xarray_opens_every_group(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for k in range(3):
            recorder.row(dict.fromkeys(COLUMNS, k), np.array([1, 3]))
            recorder.write_snapshot(np.full(7, float(k)), 2)
        recorder.table("ranks", {"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.table("clients", {"samples": [5, 5, 5, 5], "own": [1, 2, 3, 4]})
        recorder.by_client("clients", {"accuracy": np.ones(4)})
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
    with xarray.open_datatree(path, engine="h5netcdf") as tree:  # no dimension has two lengths
        data = {group: tree[group].to_dataset(inherit=False).load() for group in SIZES}
    assert {group: dict(found.sizes) for group, found in data.items()} == SIZES
    for group in ("clients", "models"):  # alone
        assert data[group].identical(xarray.load_dataset(path, group=group, engine="h5netcdf"))
    assert data["/"].attrs["status"] == "finished"
    assert data["/"]["selection"].values.tolist() == [[-1, -1], [1, 3], [1, 3]]
    elapsed = data["rounds"]["elapsed_seconds"]
    assert (elapsed.dtype, elapsed.attrs["units"]) == (np.float64, "s")  # and no time difference
    assert data["rounds"]["round"].values.tolist() == [0, 1, 2]
    models = data["models"]["x"]
    assert (models.dims, models.attrs["units"]) == (("stored_round", "parameter"), "1")
    assert models.sel(stored_round=2).values.tolist() == [2.0] * 7


def test_every_column_has_a_unit_that_agrees_with_its_name_and_a_sentence():
    columns = [*(c for table in (COLUMNS, RANKS, CLIENTS, MODEL, SCALES) for c in table.values()), SELECTION, UNKNOWN]
    for column in columns:
        assert column.unit in ("1", "s", "byte", "bit")
        assert column.description.endswith(".")
        assert column.description[0].isupper()
    for name, column in COLUMNS.items():
        assert (column.unit == "s") == name.endswith("_seconds")
        assert (column.unit == "byte") == name.startswith("bytes_")
        assert (column.unit == "s") == (column.part == "time")
        assert not (column.integer and column.span == "state")
    names = [column.symbol or name for name, column in COLUMNS.items()]
    assert len(set(names)) == len(names)


def test_every_column_is_written_by_some_run():
    studies = [
        ["algorithm=fedadmm", "algorithm.lagrangian=true", "stop.optimum=0.0"],
        ["algorithm=fedgia", "algorithm.adaptive=true"],
        ["algorithm=feddcd", "algorithm.dual=true", "data=gaussian", "data.clients=13"],
        ["algorithm=flame", "data=digits", "data.clients=13", "algorithm.envelope=true", "algorithm.lagrangian=true"],
        ["algorithm=fedepm", "data=gaussian", "data.clients=13", "algorithm.noise=clipped", "algorithm.delta=1e-5"],
        ["algorithm=q-fedavg", "data=gaussian", "data.clients=13"],
        STUDIES["fedavg, flaky"],
        STUDIES["newton"],
        STUDIES["scaffold, private"],
        STUDIES["fedavg, partial"],
        STUDIES["fedavg, asynchronous"],
        ["algorithm=fedavg", "data.clients=13", "system.availability=0.5"],
        ["algorithm=dgd", "graph=ring", "data=gaussian", "data.clients=13"],
        ["algorithm=ditto", "data=digits", "data.clients=13", "data.validation=0.2"],
    ]
    results = [mpifed.run(override({}, [*study, "rounds=2", "stop.diverged=0"])) for study in studies]
    written = {name for result in results for name in result.rounds} - {"round"}
    assert {name for result in results for name in result.ranks} == {"rank", *RANKS}
    assert set(COLUMNS) == written | set(MEASURES) | {
        f"validation_{name}" for name in MEASURES
    }  # tests/networks/test_torch_losses.py has those of regression
