"""Gaussian data: labels from a hyperplane, the same for any number of clients."""

from __future__ import annotations

import time

import numpy as np

from tests.helpers.made_data import build


def test_gaussian_labels_come_from_a_hyperplane_with_a_tenth_flipped():
    table = {"name": "gaussian", "clients": 500, "samples": 40, "features": 10}
    dataset = build(table)
    X, y = dataset.rows(0, 500)
    assert dataset.classes == 2
    assert np.allclose(X.var() * 10, 1, rtol=0.02)
    assert set(y) == {0, 1}
    straight = X @ dataset.w > 0
    assert np.isclose(np.mean(straight != y), 0.1, atol=0.01)
    linear = build({**table, "task": "linear", "noise": 0.2})
    X, b = linear.rows(0, 500)
    assert linear.classes == 0
    assert np.isclose((b - X @ linear.w).std(), 0.2, rtol=0.05)


def test_gaussian_numbers_do_not_depend_on_the_number_of_clients():
    few, many = (build({"name": "gaussian", "clients": m}).rows(3, 5) for m in (5, 300))
    assert np.array_equal(few[0], many[0])
    assert np.array_equal(few[1], many[1])


def test_a_million_clients_would_take_seconds():
    dataset = build({"name": "gaussian", "clients": 1_000_000})
    started = time.process_time()
    X, _ = dataset.rows(500_000, 520_000)
    assert X.shape == (400_000, 20)
    assert time.process_time() - started < 0.75  # 15 s for fifty times as many; it takes a third of that
