"""Two of FLamby's tasks load through options of [data] alone, where MPIFED_DATA has their files in flamby."""

import os
from pathlib import Path

import numpy as np
import pytest

from mpifed.data.dataset import Data

FOLDER = Path(os.environ.get("MPIFED_DATA", ""), "flamby")
HEART = {
    "path": [str(FOLDER / f"heart/processed.{name}.data") for name in ("cleveland", "hungarian", "switzerland", "va")],
    "ignore": [10, 11, 12],
    "categories": [2, 6],
    "above": 0,
    "missing": "drop",
    "ones": True,
}
BRCA = {
    "path": str(FOLDER / "brca.csv"),
    "join": str(FOLDER / "train_test_split.csv"),
    "client": "fold2",
    "test": "fold2",
    "ignore": ["fold"],
    "time": "T",
    "event": "E",
}


def loaded(**options):
    """The data set, if its files are there."""
    if not FOLDER.is_dir():
        pytest.skip("MPIFED_DATA has no flamby")
    return Data.build({"name": "file", **options}, "data").load(0, "float64")


def test_heart_has_the_samples_and_features_of_flamby():
    data = loaded(**HEART, test=0.3425, standardise="pooled")  # FLamby takes 34 %, rounded up
    assert data.sizes.tolist() == [199, 172, 30, 85]
    assert data.sizes_test.tolist() == [104, 89, 16, 45]
    assert (data.n, data.owners[0], data.values().tolist()) == (14, "processed.cleveland", [0, 1])
    assert data.features[2:5] == ("column 2=2", "column 2=3", "column 2=4")
    X = data.rows(0, 4)[0]
    assert np.allclose(X[:, 0].mean(), 0)
    assert np.allclose(X[:, 0].std(), 1)


def test_the_optimum_of_heart_is_that_of_its_tables():
    """f* of the mean logistic loss over all 740 rows, by statsmodels: -Logit(y, X).fit().llf/740 of these columns."""
    data = loaded(**HEART)
    X, y = data.rows(0, 4)
    x = np.zeros(data.n)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ x))
        x -= np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (p - y))
    assert abs(np.mean(np.logaddexp(0, X @ x) - y * (X @ x)) - 0.42012454229) < 1e-10


def test_brca_has_the_split_the_regions_and_the_events_of_flamby():
    data = loaded(**BRCA)
    assert data.sizes.tolist() == [248, 156, 164, 129, 129, 40]
    assert data.sizes_test.tolist() == [63, 40, 42, 33, 33, 11]
    assert (data.m, data.n, data.owners) == (6, 39, ("0", "1", "2", "3", "4", "5"))
    assert data.features[0] == "age_at_index"
    assert (data.rows(0, 6)[1] > 0).sum() + (data.rows_test(0, 6)[1] > 0).sum() == 151
    assert "8 rows of " in data.notes[1]
