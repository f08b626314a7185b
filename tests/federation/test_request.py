"""Replies collected from blocks."""

import numpy as np

from mpifed.federation.request import Collected, Layout


def test_replies_of_blocks_become_rows_in_client_order():
    found = Collected(4, np.float64, lend=False)
    found.put(np.array([2, 0]), (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])))
    found.put(np.array([1, 3]), (np.array([[5.0, 6.0], [7.0, 8.0]]), np.array([30.0, 40.0])))
    assert found.layout == Layout(((2,), ()))
    assert found.rows.tolist() == [[3, 4, 20], [5, 6, 30], [1, 2, 10], [7, 8, 40]]


def test_an_array_is_lent_only_where_it_is_all_there_is():
    for lend in (True, False):
        whole, found = np.ones((3, 2)), Collected(3, np.float64, lend)
        found.put(slice(0, 3), (whole,))
        assert np.shares_memory(found.rows, whole) == lend
