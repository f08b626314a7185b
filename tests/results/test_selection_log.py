"""Which clients were selected, as the file stores it."""

import numpy as np

from mpifed.results.columns import ALL
from mpifed.results.recorder import Recorder
from mpifed.results.result import load
from tests.results.conftest import ATTRS, row

NOBODY = np.zeros(0, np.int64)


def test_selection_has_a_row_a_round_and_grows_in_width_and_is_there_without_rounds(memory, path):
    for ids in ([0], [1], [0, 2, 3], [], [2, 1]):
        memory.row({}, np.array(ids, np.int64))
        memory.flush()
    assert memory.file["selection"].dtype == np.int32
    assert memory.result().selection.tolist() == [[-1] * 3, [1, -1, -1], [0, 2, 3], [-1] * 3, [2, 1, -1]]
    with Recorder(path, ATTRS, 4) as recorder:
        recorder.row(row(0), NOBODY)
    assert load(path).selection.tolist() == [[-1]]


def test_none_means_all_and_of_very_many_clients_all_are_one_mark(memory):
    memory.row({}, None)
    memory.row({}, None)
    result = memory.result()
    assert result.selection.tolist() == [[-1] * 4, [0, 1, 2, 3]]
    assert result.selected(1).tolist() == [0, 1, 2, 3]
    recorder = Recorder(None, ATTRS, 10_000)
    for ids in (None, None, np.array([7, 9])):
        recorder.row({}, ids)
    result = recorder.result()
    assert result.selection.tolist() == [[-1, -1], [ALL, -1], [7, 9]]
    assert len(result.selected(1)) == 10_000
    assert [len(result.selected(k)) for k in (0, 2)] == [0, 2]
