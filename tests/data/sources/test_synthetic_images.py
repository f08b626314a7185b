"""Synthetic images show the pattern of their class."""

import numpy as np

from tests.helpers.made_data import build


def test_images_show_the_pattern_of_their_class():
    table = {"name": "images", "clients": 12, "samples": 10, "size": 16, "noise": 0.0, "test": 0.0}
    dataset = build(table)
    X, y = dataset.rows(0, 12)
    assert (dataset.n, dataset.classes, set(y)) == (768, 6, set(range(6)))
    for part in y.astype(int).reshape(12, 10):
        assert sorted(np.bincount(part))[-2:] == [5, 5]
    patterns = dataset.patterns
    for row, c in zip(X, y, strict=True):
        shifts = [np.roll(patterns[int(c)], (-a, -b), axis=(1, 2)).ravel() for a in range(3) for b in range(3)]
        assert any(np.allclose(row, shifted) for shifted in shifts)
    assert np.allclose((patterns**2).mean(), 1, atol=0.4)
    noisy = build({**table, "noise": 0.5}).rows(0, 12)[0]
    assert np.allclose((noisy - X).std(), 0.5, rtol=0.05)
    usual = build("images")  # made for the CNN of flame
    assert (usual.n, usual.classes, usual.sizes_test.sum() > 0) == (3 * 64 * 64, 6, True)
