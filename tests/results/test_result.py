"""Reading results back: from files, from memory, as a table of pandas or xarray."""

import os
import sys

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report.summary import show
from mpifed.results.result import Result, load
from tests.helpers.recorded_runs import detailed as run


def same(a, b):
    for part in ("rounds", "ranks", "clients"):
        assert list(getattr(a, part)) == list(getattr(b, part))
        for name, values in getattr(a, part).items():
            assert np.array_equal(values, getattr(b, part)[name], equal_nan=values.dtype.kind == "f")
    assert np.array_equal(a.selection, b.selection)
    assert np.array_equal(a.x, b.x)
    assert np.array_equal(a.personal, b.personal)
    assert a.attrs == b.attrs
    assert a.about == b.about


def test_a_result_knows_how_the_run_went_and_outlives_its_file(path):
    result = run(path)
    assert result.path == str(path)
    assert (result.status, result.stop_reason) == ("finished", "gradient: 1e-09 <= 1e-07")
    assert result.config["algorithm"] == {"name": "fedgia", "k0": 5}
    assert result.m == 8
    assert result.rounds["objective"].tolist() == [8, 4, 2, 1, 0.5]
    assert result.x.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.personal.shape == (8, 6)
    assert result.clients["times_selected"].tolist() == list(range(8))
    assert result.selection.tolist() == [[-1, -1]] + [[1, 6]] * 4
    assert [result.selected(k).tolist() for k in (0, 1)] == [[], [1, 6]]
    path.unlink()
    assert result.rounds["objective"][0] == 8


def test_the_papers_three_numbers_before_the_first_round_too():
    result = run()
    assert result.cr == 4
    assert result.tct == 2.0
    assert result.lct == 0.25  # round 0 is no round of work
    result = run(rounds=0)
    assert result.cr == 0
    assert np.isnan(result.tct)
    assert np.isnan(result.lct)
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
    same(load(path), result)
    with h5py.File(path) as file:
        result = Result.from_file(file)
    same(result, load(path))


def test_a_result_from_a_file_is_saved_as_a_copy_unless_the_file_is_gone(path, tmp_path):
    result = run(path)
    result.save(tmp_path / "copy.h5")
    assert (tmp_path / "copy.h5").read_bytes() == path.read_bytes()
    path.unlink()
    with pytest.raises(UserError, match="cannot be written: no such file"):
        result.save(tmp_path / "again.h5")
    assert os.listdir(tmp_path) == ["copy.h5"]


def test_save_overwrites_only_with_force(path):
    run(path, rounds=2)
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force"):
        run().save(path)
    assert load(path).cr == 1
    run().save(path, force=True)
    assert load(path).cr == 4
    assert os.listdir(path.parent) == ["out.h5"]


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
