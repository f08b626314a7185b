"""Example V.1 of FedGiA."""

from __future__ import annotations

import numpy as np

from mpifed.data.base import Data


def test_linreg_noniid_is_example_v1():
    dataset = Data.build({"name": "linreg-noniid", "clients": 300}, "data").load(0, "float64")
    assert dataset.n == 100
    assert dataset.classes == 0
    assert dataset.sizes.min() == 50
    assert dataset.sizes.max() == 150
    d = dataset.sizes.sum()
    assert list(np.bincount(dataset.kinds)) == [d // 3, d // 3, d - 2 * (d // 3)]
    rows, b = dataset.rows(0, 300)
    variance = np.array([rows[dataset.kinds == kind].var() for kind in range(3)])
    assert np.allclose(variance, [1, 5 / 3, 100 / 12], rtol=0.03)  # normal, t(5), uniform in [-5, 5]
    assert np.allclose([b[dataset.kinds == kind].var() for kind in range(3)], [1, 5 / 3, 100 / 12], rtol=0.1)
    assert np.abs(rows[dataset.kinds == 2]).max() <= 5
    mixed = [len(set(dataset.kinds[a : a + 50])) for a in np.cumsum(dataset.sizes) - dataset.sizes]
    assert min(mixed) == 3  # every client has all three
