"""Synthetic data of FedProx and FLAME follow their law."""

import numpy as np

from tests.helpers.made_data import build


def test_synthetic_has_the_sizes_and_shapes_of_flame():
    dataset = build("synthetic")
    assert (dataset.m, dataset.n, dataset.classes) == (30, 60, 10)
    whole = dataset.sizes + dataset.sizes_test
    assert 5000 <= whole.min() <= whole.max() <= 9999
    assert np.all(np.abs(dataset.sizes_test - 0.2 * whole) <= 0.5)
    X, y = dataset.rows(0, 1)
    assert X.shape == (dataset.sizes[0], 60)
    assert set(y) <= set(range(10))


def test_synthetic_follows_the_law_of_fedprox():
    table = {"name": "synthetic", "clients": 2000, "alpha": 0.0, "beta": 2.0, "least": 20, "most": 20, "test": 0.0}
    X = build(table).rows(0, 2000)[0].reshape(2000, 20, 60)
    spread = (X - X.mean(axis=1, keepdims=True)).var(axis=(0, 1), ddof=0) * 20 / 19
    assert np.allclose(spread, np.arange(1, 61) ** -1.2, rtol=0.05)  # Sigma_jj
    v = X.mean(axis=1)
    assert np.allclose(v.mean(axis=1).std(), 2.0, rtol=0.1)  # B_k, a standard deviation and no variance
    assert np.allclose((v - v.mean(axis=1, keepdims=True)).var(), 1, rtol=0.05)
    calm = build({**table, "beta": 0.0}).rows(0, 2000)[0].reshape(2000, 20, 60).mean(axis=(1, 2))
    assert calm.std() < 0.2


def shares(y):
    """Of each of the two clients, the shares of the four classes."""
    return [np.bincount(part.astype(int), minlength=4) / 3000 for part in (y[:3000], y[3000:])]


def test_synthetic_labels_come_from_one_linear_model_a_client():
    table = {"name": "synthetic", "clients": 2, "features": 3, "classes": 4, "least": 3000, "most": 3000, "test": 0.0}
    X, y = build({**table, "alpha": 50.0}).rows(0, 2)
    for half in (slice(0, 3000), slice(3000, 6000)):  # classes of a linear model are convex: midpoints keep them
        A, label = X[half], y[half]
        same = np.flatnonzero(label == label[0])
        middle = (A[same[0]] + A[same[1:200]]) / 2
        near = np.argmin(((A[:, None] - middle) ** 2).sum(axis=2), axis=0)
        assert np.mean(label[near] == label[0]) > 0.9
    X, y = build({**table, "iid": True}).rows(0, 2)
    assert np.allclose(*shares(y), atol=0.05)  # one law for both
    assert np.abs(X.mean(axis=0)).max() < 0.1
    assert not np.allclose(*shares(build(table).rows(0, 2)[1]), atol=0.05)
