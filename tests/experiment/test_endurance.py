"""A round leaves nothing behind in memory, however many there are."""

import gc
import tracemalloc

import numpy as np
import pytest

import mpifed
from mpifed.results import recorder, rounds_table

STUDIES = {
    "fedavg": {"algorithm": "fedavg"},
    "fedgia, everything recorded": {"algorithm": "fedgia", "record.models": 40, "evaluate.every": 1},
    "cover and devices": {"algorithm": "fedadmm", "selection": "cover", "system.dropout": 0.2, "system.jitter": 0.1},
    "biased, mini-batches": {
        "algorithm": {"name": "fedavg", "batch_size": 2},
        "selection": {"name": "biased", "count": 3, "candidates": 5},
    },
    "checkpoints": {"algorithm": "scaffold", "checkpoint.every_rounds": 100},
}
FIRST, LAST = 400, 1200  # the rounds that are compared
SLACK = 30  # bytes a round: less than a number in a list; libraries keep some small objects for use again


def left_behind(folder, study, keep=lambda row: None):
    """Bytes of Python's memory that the rounds between FIRST and LAST left behind, with no row waiting."""
    found = []

    def look(round, row):
        keep(row)
        if round in (FIRST, LAST):
            gc.collect()
            found.append(tracemalloc.get_traced_memory()[0])

    small = {"data": "gaussian", "data.clients": 8, "data.samples": 4, "data.features": 4, "stop.gradient": 0.0}
    tracemalloc.start()
    try:
        run = {"rounds": LAST + 1, "evaluate.every": 10} | small | study
        mpifed.run(None, run, path=folder / "run.h5", force=True, progress=False, callback=look)
    finally:
        tracemalloc.stop()
    return found[1] - found[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_rounds_leave_no_object_behind(name, tmp_path, monkeypatch):
    monkeypatch.setattr(rounds_table, "BLOCK", 20)
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", np.inf)
    assert left_behind(tmp_path, STUDIES[name]) < SLACK * (LAST - FIRST)
    if name == "fedavg":  # and what is left behind is seen
        assert left_behind(tmp_path, STUDIES[name], [].append) > SLACK * (LAST - FIRST)
