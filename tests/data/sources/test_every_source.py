"""Every synthetic source: a client's numbers are the same wherever they are made."""

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
    {"name": "linreg-noniid", "clients": 7, "features": 3},
    {"name": "quadratic", "clients": 5},
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
    one, single = dataset.rows(1, 3), build(table, dtype="float32").rows(1, 3)
    assert single[0].dtype == single[1].dtype == np.float32
    assert all(np.array_equal(single[k], one[k].astype(np.float32)) for k in (0, 1))
    if table["name"] != "lower-bound":
        other = build(table, seed=1).rows(1, 3)[0]
        assert other.shape != one[0].shape or not np.array_equal(other, one[0])
        assert np.array_equal(build({**table, "seed": 1}).rows(1, 3)[0], other)


@pytest.mark.parametrize("table", TABLES[:4], ids=lambda table: table["name"])
def test_a_rank_makes_its_own_clients_and_no_others(table, monkeypatch):
    dataset, made = build(table if table["name"] == "linreg-noniid" else {**table, "test": 0.0}), []
    draw = type(dataset).draw
    monkeypatch.setattr(type(dataset), "draw", lambda self, i: made.append(i) or draw(self, i))
    dataset.rows(1, 3)
    assert made == [1, 2]


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("linreg-noniid", {"least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ("linreg-noniid", {"least": 0}, r"data\.least = 0 is wrong"),
        ("linreg-noniid", {"partition": "iid"}, r"unknown key 'data\.partition'"),
        ("quadratic", {"mu": 2.0}, r"data: mu = 2\.0 is more than L = 1\.0"),
        ("quadratic", {"mu": 0.0}, r"data\.mu = 0\.0 is wrong"),
        ("synthetic", {"least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ("synthetic", {"alpha": -1.0}, r"data\.alpha = -1\.0 is wrong"),
        ("lower-bound", {"clients": 10, "alpha": 0.1}, r"data: alpha = 0\.1 must be below beta/clients = 0\.1, as"),
        ("lower-bound", {"clients": 1}, r"data: clients = 1 is too few"),
        ("images", {"per_client": 7}, r"data: per_client = 7 is more than classes = 6"),
        ("gaussian", {"noise": 1.5}, r"data: noise = 1\.5 is the share of labels flipped"),
        ("gaussian", {"task": "ordinal"}, r'data\.task = "ordinal" is wrong: it must be "logistic" or "linear"'),
        ("gaussian", {"samples": 1, "test": 0.5}, r"data\.test = 0\.5 leaves no client a test sample, .* more than 1"),
    ],
)
def test_values_that_cannot_be_are_refused(name, options, sentence):
    with pytest.raises(UserError, match=sentence):
        Data.build({"name": name, **options}, "data").load(0, "float64")
