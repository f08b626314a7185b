"""Selections by turns."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpifed.federation.participation.cyclic import Cyclic
from tests.federation.participation.test_selection import drawn


@given(m=st.integers(1, 60), data=st.data(), again=st.integers(0, 1))
def test_turns_come_round_evenly(m, data, again):
    size = data.draw(st.integers(1, m))
    overlap = data.draw(st.integers(0, size - 1))
    rule = Cyclic(count=size, overlap=overlap, shuffled=data.draw(st.booleans()))
    sets = drawn(rule, 3, m, m, again)  # m rounds are whole turns
    assert all(len(chosen) == size and (np.diff(chosen) > 0).all() for chosen in sets)
    times = np.bincount(np.concatenate(sets), minlength=m)
    assert (times > 0).all() if overlap else (times == size).all()
    if size < m and 2 * size - overlap <= m:
        assert all(len(np.intersect1d(a, b)) == overlap for a, b in pairwise(sets))


def test_turns_follow_the_order_of_the_data():
    found = drawn(Cyclic(count=3), 0, 7, 4)
    assert [chosen.tolist() for chosen in found] == [[0, 1, 2], [3, 4, 5], [0, 1, 6], [2, 3, 4]]
    assert drawn(Cyclic(count=3), 0, 7, 1, again=1)[0].tolist() == [3, 4, 5]
    shuffled = drawn(Cyclic(count=1, shuffled=True), 1, 30, 30)
    assert np.concatenate(shuffled).tolist() not in ([*range(30)], sorted(range(30), reverse=True))
