"""/models: the server's model after some of the rounds, as safe and as readable as the rounds."""

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.results import model_log
from mpifed.results.recorder import Recorder
from mpifed.results.result import load
from tests.results.conftest import ATTRS, row, written


def grown(path, rounds, every=1, **options):
    """A finished file whose models of 5 parameters are full of their round."""
    with Recorder(path, ATTRS, 4, **options) as recorder:
        for k in range(rounds + 1):
            recorder.row(row(k), np.array([0, 2]))
            recorder.write_snapshot(np.full(5, float(k)), every)
        recorder.model(np.full(5, float(rounds)))
        recorder.write_snapshot(np.full(5, float(rounds)), every, last=True)
    return recorder


def test_models_are_read_back_with_their_rounds_and_the_last_one_once_from_memory_too_where_there_are_any(path):
    for rounds, expected in ((7, [0, 3, 6, 7]), (6, [0, 3, 6]), (0, [0])):
        grown(path, rounds, 3, force=True)
        models = load(path).models
        assert models["round"].tolist() == expected
        assert models["x"].tolist() == [[k] * 5 for k in expected]
        assert models["x"][-1].tolist() == load(path).x.tolist()
    result = grown(None, 5, 2).result()
    assert result.models["round"].tolist() == [0, 2, 4, 5]
    result.save(path, force=True)
    assert load(path).models["x"][:, 0].tolist() == [0, 2, 4, 5]
    written(path, force=True)  # without models
    assert [len(values) for values in load(path).models.values()] == [0, 0]
    with h5py.File(path) as file:
        assert "models" not in file


def test_a_long_model_is_stored_in_several_chunks_and_keeps_its_type(path, monkeypatch):
    monkeypatch.setattr(model_log, "LONGEST", 16)
    x = np.arange(100, dtype=np.float32)
    with Recorder(path, ATTRS, 4) as recorder:
        for k in range(3):
            recorder.row(row(k), None)
            recorder.write_snapshot(k * x, 1)
    found = load(path).models["x"]
    assert found.dtype == np.float32
    assert np.array_equal(found, [0 * x, x, 2 * x])
    with h5py.File(path) as file:
        assert file["models/x"].chunks == (1, 16)


def test_a_file_from_elsewhere_is_refused_where_they_are_no_models_and_so_is_one_that_is_gone(path):
    grown(path, 2)
    for name, wrong, words in (
        ("x", np.zeros(3), r"x has type float64 and shape \(3,\), but must be a table of numbers"),
        ("x", np.array([[b"a"]]), r"x has type \S+ and shape \(1, 1\), but must be a table of numbers"),
        ("stored_round", np.zeros((2, 2)), r"stored_round has type float64 and shape \(2, 2\), but must be a column"),
    ):
        with h5py.File(path, "r+") as file:
            del file["models"][name]
            file["models"][name] = wrong
        with pytest.raises(UserError, match=f"out.h5 is not a valid result: models/{words}"):
            _ = load(path).models
    grown(path, 2, force=True)
    with h5py.File(path, "r+") as file:
        file["models/stored_round"][:] = [0, 2, 1]
    with pytest.raises(UserError, match=r"out\.h5 is not a valid result: the numbers in models/round must rise"):
        _ = load(path).models
    result = load(path)
    path.unlink()
    with pytest.raises(UserError, match=r"out\.h5 cannot be read: no such file"):
        _ = result.models
