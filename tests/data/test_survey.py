"""One pass over a data set: what it counts does not depend on how many clients are read at a time."""

import numpy as np
import pytest

from mpifed.data.pool import Pool
from mpifed.data.survey import level_names, survey
from tests.helpers.data_files import SPARSE, load, write
from tests.helpers.made_data import build


def test_counts_and_moments_are_those_of_each_client(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    y, sizes = rng.integers(3, 7, 50), np.array([1, 9, 20, 15, 5])
    X = rng.integers(0, 2, (50, 4))
    for block in (1, 30, 10**6):
        monkeypatch.setattr("mpifed.data.survey.BLOCK", block)
        found = survey(Pool(X, y, None, sizes))
        assert found.nonzeros == np.count_nonzero(X)
        assert found.levels.tolist() == [3, 4, 5, 6]
        for i, part in enumerate(np.split(y, np.cumsum(sizes)[:-1])):
            assert found.counts[[i]].toarray().ravel().tolist() == np.bincount(part, minlength=7)[3:].tolist()
            assert (found.low[i], found.high[i]) == (part.min(), part.max())
            assert (found.mean[i], found.deviation[i]) == pytest.approx((part.mean(), part.std()))
    assert survey(load(write(tmp_path / "fed.h5", SPARSE))).nonzeros == 40


@pytest.mark.parametrize("labels", [[0.5, 1.0], [-1.5, 2.0], range(1001)])
def test_labels_that_are_no_classes_have_no_levels(labels):
    y = np.array(list(labels), dtype=float)
    found = survey(Pool(np.ones((len(y), 1)), y, None, np.array([len(y)])))
    assert (len(found.levels), found.counts.shape) == (0, (1, 0))


def test_classes_of_generated_data_are_known_without_reading_them():
    dataset = build({"name": "synthetic", "clients": 2, "least": 20, "most": 30, "classes": 4})
    found = survey(dataset)
    assert found.levels.tolist() == [0, 1, 2, 3]
    assert np.array_equal(np.asarray(found.counts.sum(axis=1)).ravel(), dataset.sizes)
    assert level_names(dataset, found.levels) == ["0", "1", "2", "3"]
