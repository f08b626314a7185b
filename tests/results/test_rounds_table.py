"""Rounds in the file, late columns, who was selected; models after some rounds: as safe and as readable."""

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.results import model_log
from mpifed.results import recorder as record
from mpifed.results.columns import ALL, COLUMNS
from mpifed.results.recorder import Recorder
from mpifed.results.result import load
from tests.results.conftest import ATTRS, row, written


def test_rows_are_columns_of_their_kind(path, memory):
    written(path)
    memory.row({"objective": 1, "other": 2}, None)
    about = memory.result().about
    assert about["objective"] == COLUMNS["objective"][:2]
    assert about["other"] == ("1", "Reported by the algorithm or the problem.")
    rounds = load(path).rounds
    assert (rounds["round"].tolist(), rounds["uploads"].tolist()) == ([0, 1, 2, 3, 4], [0, 4, 8, 12, 16])
    assert (rounds["uploads"].dtype, rounds["objective"].dtype) == (np.int64, np.float64)


def test_a_column_that_appears_late_was_not_a_number_before(memory):
    memory.row({"objective": 1.0}, None)
    memory.flush()
    memory.row({"objective": 0.5, "snr": 7.0, "inner_steps": 3}, None)
    memory.row({"snr": 8.0}, None)
    rounds = memory.result().rounds
    np.testing.assert_equal(rounds["snr"], [np.nan, 7, 8])
    np.testing.assert_equal(rounds["objective"], [1, 0.5, np.nan])
    assert rounds["inner_steps"].tolist() == [0, 3, 0]  # a count: none is 0


def test_large_counts_are_exact_and_one_that_turns_out_to_be_a_mean_loses_nothing(memory):
    for value in (2, 3.0, 2.5):
        memory.row({"inner_steps": value, "bytes_up": 2**60 + 1, "bits_up": int(value * 2**62)}, None)
        memory.flush()
    assert memory.result().rounds["bytes_up"][0] == 2**60 + 1
    assert memory.result().rounds["inner_steps"].tolist() == [2, 3, 2.5]
    assert memory.result().rounds["bits_up"].tolist() == [2.0**63, 3 * 2.0**62, 2.5 * 2.0**62], "too large for int64"
    assert len(memory.file["rounds/inner_steps"].dims[0]) == 1


def test_a_column_cannot_be_called_like_a_path_or_the_round():
    for name in ("a/b", "round"):
        with pytest.raises(ValueError, match=name):
            record.Recorder(None, ATTRS, 4).row({name: 1}, None)


def test_a_row_may_be_changed_after_it_was_recorded(memory, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    values, ids = {"objective": 0.0}, np.array([3])
    for k in range(3):
        values["objective"] = ids[0] = k
        memory.row(values, ids)
    result = memory.result()
    assert result.rounds["objective"].tolist() == [0, 1, 2]
    assert result.selection.tolist() == [[-1], [1], [2]]


def test_selection_has_a_row_a_round_and_grows_in_width_and_is_there_without_rounds(memory, path):
    for ids in ([0], [1], [0, 2, 3], [], [2, 1]):
        memory.row({}, np.array(ids, np.int64))
        memory.flush()
    assert memory.file["selection"].dtype == np.int32
    assert memory.result().selection.tolist() == [[-1] * 3, [1, -1, -1], [0, 2, 3], [-1] * 3, [2, 1, -1]]
    with record.Recorder(path, ATTRS, 4) as recorder:
        recorder.row(row(0), np.zeros(0, np.int64))
    assert load(path).selection.tolist() == [[-1]]


def test_none_means_all_and_of_very_many_clients_all_are_one_mark(memory):
    memory.row({}, None)
    memory.row({}, None)
    result = memory.result()
    assert result.selection.tolist() == [[-1] * 4, [0, 1, 2, 3]]
    assert result.selected(1).tolist() == [0, 1, 2, 3]
    recorder = record.Recorder(None, ATTRS, 10_000)
    for ids in (None, None, np.array([7, 9])):
        recorder.row({}, ids)
    result = recorder.result()
    assert result.selection.tolist() == [[-1, -1], [ALL, -1], [7, 9]]
    assert len(result.selected(1)) == 10_000
    assert [len(result.selected(k)) for k in (0, 2)] == [0, 2]


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
