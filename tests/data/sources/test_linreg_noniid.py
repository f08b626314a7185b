"""Example V.1 of FedGiA."""

import numpy as np

from tests.helpers.made_data import build


def test_linreg_noniid_is_example_v1():
    dataset = build({"name": "linreg-noniid", "clients": 300})
    d, kinds = dataset.sizes.sum(), dataset.kinds
    assert (dataset.n, dataset.classes, dataset.sizes.min(), dataset.sizes.max()) == (100, 0, 50, 150)
    assert list(np.bincount(kinds)) == [d // 3, d // 3, d - 2 * (d // 3)]
    rows, b = dataset.rows(0, 300)
    wanted = [1, 5 / 3, 100 / 12]  # variances of normal, t(5), uniform in [-5, 5]
    assert np.allclose([rows[kinds == kind].var() for kind in range(3)], wanted, rtol=0.03)
    assert np.allclose([b[kinds == kind].var() for kind in range(3)], wanted, rtol=0.1)
    assert np.abs(rows[kinds == 2]).max() <= 5
    starts = np.cumsum(dataset.sizes) - dataset.sizes
    assert min(len(set(kinds[a : a + 50])) for a in starts) == 3  # every client has all three
