"""Every synthetic source: a client's numbers are the same wherever they are made."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.made_data import build

SMALL = {"least": 20, "most": 30}


TABLES = [
    {"name": "synthetic", "clients": 5, **SMALL},
    {"name": "synthetic", "clients": 5, "iid": True, **SMALL},
    {"name": "images", "clients": 4, "samples": 7, "size": 8},
    {"name": "lower-bound", "clients": 4, "features": 9},
    {"name": "gaussian", "clients": 9, "samples": 60, "features": 100},
    {"name": "gaussian", "clients": 9, "samples": 3, "features": 2, "task": "linear"},
    {"name": "gaussian", "clients": 3, "samples": 200, "features": 170, "test": 0.5},
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["name"])
def test_made_clients_are_the_same_wherever_they_are_made(table):
    dataset = build(table)
    same_rows_however_asked(dataset)
    if dataset.sizes_test is not None:
        same_tests_however_asked(dataset)
    single = build(table, dtype="float32").rows(1, 3)
    assert single[0].dtype == single[1].dtype == np.float32
    assert np.array_equal(single[0], dataset.rows(1, 3)[0].astype(np.float32))
    assert np.array_equal(single[1], dataset.rows(1, 3)[1].astype(np.float32))
    if table["name"] != "lower-bound":
        other = build(table, seed=1).rows(1, 3)[0]
        assert other.shape != single[0].shape or not np.array_equal(other, dataset.rows(1, 3)[0])
        assert np.array_equal(build({**table, "seed": 1}).rows(1, 3)[0], other)


@pytest.mark.parametrize("table", TABLES[:3], ids=lambda table: table["name"])
def test_a_rank_makes_its_own_clients_and_no_others(table, monkeypatch):
    dataset, made = build({**table, "test": 0.0}), []
    draw = type(dataset).draw
    monkeypatch.setattr(type(dataset), "draw", lambda self, i: made.append(i) or draw(self, i))
    dataset.rows(1, 3)
    assert made == [1, 2]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"name": "synthetic", "least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ({"name": "synthetic", "alpha": -1.0}, r"data\.alpha = -1\.0 is wrong"),
        (
            {"name": "lower-bound", "clients": 10, "alpha": 0.1},
            r"data: alpha = 0\.1 must be below beta/clients = 0\.1, as \(41\)",
        ),
        ({"name": "lower-bound", "clients": 1}, r"data: clients = 1 is too few"),
        ({"name": "images", "per_client": 7}, r"data: per_client = 7 is more than classes = 6"),
        ({"name": "gaussian", "noise": 1.5}, r"data: noise = 1\.5 is the share of labels flipped"),
        (
            {"name": "gaussian", "task": "ordinal"},
            r"data\.task = \"ordinal\" is wrong: it must be \"logistic\" or \"linear\"",
        ),
    ],
)
def test_values_that_cannot_be_are_refused(table, sentence):
    with pytest.raises(UserError, match=sentence):
        Data.build(table, "data")


def test_clients_of_one_sample_leave_nothing_to_test_on():
    with pytest.raises(UserError, match=r"data\.test = 0\.5 leaves no client a test sample, .* more than 1 samples"):
        build({"name": "gaussian", "samples": 1, "test": 0.5})
