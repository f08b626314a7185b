"""The largest numbers of a message, found without sorting it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpifed.compressors.sparse import TopK, largest


@settings(deadline=None)
@given(
    rows=st.integers(1, 30).flatmap(
        lambda N: st.lists(st.lists(st.integers(0, 4), min_size=N, max_size=N), min_size=1, max_size=5)
    ),
    share=st.floats(0.01, 1),
)
def test_of_equal_numbers_the_first_are_taken(rows, share):
    sizes = np.array(rows, float)
    k = max(1, int(share * sizes.shape[1]))
    expected = [sorted(np.argsort(-row, kind="stable")[:k]) for row in sizes]
    assert largest(sizes, k).tolist() == expected


def test_messages_of_any_length_are_cut_into_pieces_without_a_trace():
    rows = np.random.default_rng(0).integers(-50, 50, (9, 20000)).astype(float)
    expected = [sorted(np.argsort(-np.abs(row), kind="stable")[:17]) for row in rows]
    assert TopK(k=17).places(rows, list).tolist() == expected


@pytest.mark.parametrize("k", [1, 3])
def test_numbers_that_are_none_still_give_k_places(k):
    assert largest(np.array([[np.nan, 1.0, 2.0, np.nan]]), k).shape == (1, k)


def test_what_is_sent_is_a_new_array_and_the_message_stays():
    rows = np.arange(12.0).reshape(2, 6)
    before = rows.copy()
    sent = TopK(k=2).compress(rows, list)
    assert sent.tolist() == [[0, 0, 0, 0, 4, 5], [0, 0, 0, 0, 10, 11]]
    assert np.array_equal(rows, before)
