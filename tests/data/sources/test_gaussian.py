"""Gaussian data: labels from a hyperplane, the same for any number of clients."""

import time

import numpy as np

from tests.helpers.made_data import build


def test_gaussian_labels_come_from_a_hyperplane_with_a_tenth_flipped():
    table = {"name": "gaussian", "clients": 500, "samples": 40, "features": 10}
    dataset, linear = build(table), build({**table, "task": "linear", "noise": 0.2})
    X, y = dataset.rows(0, 500)
    assert (dataset.classes, linear.classes, set(y)) == (2, 0, {0, 1})
    assert np.allclose(X.var() * 10, 1, rtol=0.02)
    assert np.isclose(np.mean((X @ dataset.w > 0) != y), 0.1, atol=0.01)
    X, b = linear.rows(0, 500)
    assert np.isclose((b - X @ linear.w).std(), 0.2, rtol=0.05)


def test_gaussian_numbers_do_not_depend_on_the_number_of_clients_of_which_a_million_would_take_seconds():
    few, many = (build({"name": "gaussian", "clients": m}).rows(3, 5) for m in (5, 300))
    assert all(np.array_equal(few[k], many[k]) for k in (0, 1))
    dataset = build({"name": "gaussian", "clients": 1_000_000})
    started = time.process_time()
    X, _ = dataset.rows(500_000, 510_000)
    assert X.shape == (200_000, 20)
    assert time.process_time() - started < 0.5  # for a hundredth; it takes a third of that
