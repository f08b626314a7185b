"""Matrices from clients: never all of them at once, the same bits in any blocks, and refused where memory is short."""

import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed
from mpifed.algorithms.newton import Newton
from mpifed.core import memory
from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.federation.participation.selection import All
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import Run


def newton(sparse=False, m=40, n=120, **options):
    """Newton's method on clients of 4 to 20 samples in no order."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 21, m)
    X = rng.standard_normal((sizes.sum(), n)) * (rng.random((sizes.sum(), n)) < 0.2)
    data = Pool(sp.csr_array(X) if sparse else X, rng.integers(0, 2, len(X)).astype(float), None, sizes)
    return Run(Newton(), Logistic(mu=0.1, regulariser="whole"), data=data, selection=All(), **options)


def short_of_memory(monkeypatch, free):
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free", lambda: free)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_host_never_has_the_matrices_of_all_clients(sparse):
    one, run = 120 * 120 * 8, newton(sparse, block_bytes=1)
    run.rounds(1)
    tracemalloc.start()
    run.rounds(1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 14 * one < run.m * one / 2


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_hosts_change_no_bit(sparse):
    models = newton(sparse).rounds(3)
    for options in ({"block_bytes": 1}, {"block_bytes": 1 << 28}, {"cuts": (0, 7, 8, 40)}):
        run = newton(sparse, **options)
        assert run.rounds(3).tobytes() == models.tobytes()
        assert options != {"block_bytes": 1} or [len(block) for block in run.hosts[0].blocks] == [1] * 40


def test_want_of_memory_is_told_before_the_first_round(monkeypatch):
    short_of_memory(monkeypatch, 500_000)
    X = np.eye(200)
    with pytest.raises(UserError) as error:
        mpifed.run({"algorithm": "newton", "problem": "logistic"}, data=mpifed.arrays(X, X[0], [100, 100]))
    assert str(error.value) == (
        "the 4 matrices of 200 × 200 numbers that newton has at a time would take 1 MB of memory, but only 0 MB are "
        "free"
    )


class Keeping(NamedTuple):
    matrix: np.ndarray


def test_so_is_want_of_memory_for_what_clients_keep(monkeypatch):
    (host,) = newton().hosts
    short_of_memory(monkeypatch, 100_000)
    monkeypatch.setattr(type(host.algorithm), "join", lambda self, f: Keeping(f.zeros(120, 120)))
    host.state = None
    told = r"^what clients 0 to 39 keep would take 5 MB of memory, but only 0 MB are free$"
    with pytest.raises(UserError, match=told):
        host.join()
