"""Long replies are added up as they come, with the bits of the sums of all rows at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.federation import running_sums
from mpifed.federation.request import Collected
from mpifed.federation.running_sums import LONG, Running
from mpifed.federation.sums import nodes, subtotals
from tests.helpers.algorithm_runs import M, N, Run, build


def added(ids, blocks, tree, dtype="float64"):
    """What the running sums make of replies that come in blocks."""
    found, first = Running(ids, dtype, tree), 0
    for block in blocks:
        found.put(slice(first, first + len(block)), (block[:, :5], block[:, 5:]))
        first += len(block)
    return found


@given(
    m=st.integers(2, 40),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    share=st.floats(0.1, 1.0),
    step=st.integers(1, 7),
    dtype=st.sampled_from(["float64", "float32"]),
    seed=st.integers(0, 1000),
)
def test_the_bits_are_those_of_all_rows_at_once(m, cut, share, step, dtype, seed):
    rng = np.random.default_rng(seed)
    lo, hi = sorted(round(part * m) for part in cut)
    tree = nodes(lo, hi, m)
    ids = np.flatnonzero(rng.random(hi - lo) < share) + lo
    if len(ids) < 2:
        return
    rows = rng.standard_normal((len(ids), LONG)).astype(dtype)
    found = added(ids, [rows[k : k + step] for k in range(0, len(ids), step)], tree, dtype)
    assert not found.kept
    sums = found.close()
    assert sums.dtype == dtype
    assert sums.tobytes() == subtotals(rows, ids, lo, tree).tobytes()
    assert found.bad is None
    assert len(found.rows) == 0  # no row is kept


def test_short_replies_are_kept_and_long_ones_not_written_to():
    rows = np.random.default_rng(0).standard_normal((6, LONG - 1))
    found = added(np.arange(6), [rows[:4], rows[4:]], nodes(0, 6, 6))
    assert found.kept
    assert found.rows.tobytes() == rows.tobytes()
    found, rows = Running(np.arange(4), "float64", nodes(0, 4, 4)), np.ones((4, LONG))
    rows.flags.writeable = False
    found.put(slice(0, 4), (rows,))
    assert (found.close() == 4).all()


def test_an_array_is_lent_only_where_it_is_all_there_is_and_others_become_rows_in_client_order():
    for lend in (True, False):
        whole, found = np.ones((3, 2)), Collected(3, np.float64, lend)
        found.put(slice(0, 3), (whole,))
        assert np.shares_memory(found.rows, whole) == lend
    found = Collected(3, np.float64, lend=True)
    found.put(np.array([2, 0]), (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])))
    found.put(np.array([1]), (np.array([[5.0, 6.0]]), np.array([30.0])))
    assert found.rows.tolist() == [[3, 4, 20], [5, 6, 30], [1, 2, 10]]


@pytest.mark.parametrize("wrong", [[3], [2, 5], [0]])
def test_the_first_client_with_numbers_that_are_not_finite_is_known(wrong):
    ids, rows = np.array([1, 2, 4, 5, 8, 9]), np.ones((6, LONG))
    rows[wrong, 7] = np.nan
    found = added(ids, [rows[:2], rows[2:]], nodes(0, 10, 10))
    assert not np.isfinite(found.close()).all()
    assert found.bad == wrong[0]


@pytest.mark.parametrize("cuts", [(0, M), (0, 1, 2, 11, M)], ids=str)
def test_hosts_that_add_up_as_they_go_change_no_bit(cuts, monkeypatch):
    equal = LinregNoniid(clients=M, features=N, least=12, most=12)  # they come in their order
    data = equal.load(0, "float64")
    rows = Run(build("scaffold"), data=data).rounds(4)
    used = []
    monkeypatch.setattr(running_sums, "LONG", 1)
    monkeypatch.setattr(Running, "close", lambda self, close=Running.close: used.append(self) or close(self))
    assert Run(build("scaffold"), data=data, cuts=cuts).rounds(4).tobytes() == rows.tobytes()
    assert used
