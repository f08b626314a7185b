"""Reading results back: from files, from memory, as a table of pandas or xarray."""

import os
import sys

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report.summary import show
from mpifed.results.result import RoundsFirst, RunRecord, load
from tests.helpers.recorded_runs import detailed as run


def test_a_result_knows_how_the_run_went_and_outlives_its_file(path):
    result = run(path)
    path.unlink()
    assert (result.path, result.m) == (str(path), 8)
    assert (result.status, result.stop_reason) == ("finished", "gradient: 1e-09 <= 1e-07")
    assert result.config["algorithm"] == {"name": "fedgia", "k0": 5}
    assert result.rounds["objective"].tolist() == [8, 4, 2, 1, 0.5]
    assert (result.x.tolist(), result.personal.shape) == ([0, 1, 2, 3, 4, 5], (8, 6))
    assert result.clients["times_selected"].tolist() == list(range(8))
    assert [result.selected(k).tolist() for k in (0, 1)] == [[], [1, 6]]


def test_the_papers_three_numbers_before_the_first_round_too():
    for result, numbers in ((run(), (4, 2.0, 0.25)), (run(rounds=0), (0, np.nan, np.nan))):  # 0 is no round of work
        np.testing.assert_equal((result.cr, result.tct, result.lct), numbers)
    assert "after 0 rounds" in show(result)


def test_columns_come_in_the_order_of_their_table_and_an_unknown_one_is_refused_with_the_nearest():
    assert list(run().rounds)[:4] == ["round", "objective", "grad_norm_sq", "accuracy"]
    with pytest.raises(UserError, match="unknown column 'objectiv'; did you mean 'objective'"):
        run().rounds["objectiv"]
    assert "objectiv" not in run().rounds


def test_memory_file_and_an_open_file_hold_the_same(path):
    result = run()
    assert result.path is None
    result.save(path)
    loaded = load(path)
    with h5py.File(path) as file:
        opened = RunRecord.from_file(file)
    for found in (loaded, opened):
        for part in ("attrs", "about", "selection", "x", "personal", "rounds", "ranks", "clients"):
            np.testing.assert_equal(getattr(found, part), getattr(result, part))
        assert list(found.rounds) == list(result.rounds)


def test_a_table_of_runs_reads_what_it_does_not_show_only_when_it_is_used(path):
    whole = run(path)
    with h5py.File(path, "r+") as file:
        file["clients"]["samples"][0] = -1
    found = load(path, RoundsFirst)
    assert found.attrs == whole.attrs
    np.testing.assert_equal(found.rounds, whole.rounds)
    with pytest.raises(UserError, match="clients/samples has numbers below 0"):
        _ = found.clients
    with h5py.File(path, "r+") as file:
        file["clients"]["samples"][0] = whole.clients["samples"][0]
    for part in ("selection", "x", "personal", "ranks", "clients"):
        np.testing.assert_equal(getattr(found, part), getattr(whole, part))


def test_a_result_is_saved_as_a_copy_of_its_file_unless_that_is_gone_over_others_only_with_force(path, tmp_path):
    short, copy = run(path, rounds=2), tmp_path / "copy.h5"
    short.save(copy)
    assert copy.read_bytes() == path.read_bytes()
    with pytest.raises(UserError, match=r"copy\.h5 exists; say --force"):
        run().save(copy)
    assert load(copy).cr == 1
    run().save(copy, force=True)
    assert load(copy).cr == 4
    path.unlink()
    with pytest.raises(UserError, match=r"out\.h5 cannot be read: no such file"):
        short.save(tmp_path / "again.h5")
    assert os.listdir(tmp_path) == ["copy.h5"]


def test_rounds_as_a_data_frame_and_as_a_dataset():
    frame = run().to_pandas()
    assert frame.index.name == "round"
    assert frame["objective"].tolist() == [8, 4, 2, 1, 0.5]
    assert frame["uploads"].dtype == np.int64
    data = run().to_xarray()
    assert data["objective"].sel(round=1) == 4
    assert data["bytes_up"].attrs["units"] == "byte"
    assert data.attrs["status"] == "finished"


@pytest.mark.parametrize("name", ["pandas", "xarray"])
def test_what_is_not_installed_is_told_with_the_command(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=f"needs {name}: pip install {name}$"):
        getattr(run(), f"to_{name}")()
