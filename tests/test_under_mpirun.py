"""Start the tests of tests/mpi on several ranks, in a process group that cannot outlive its time.

By hand: ``mpirun -n 3 python -m pytest --with-mpi -m mpi tests/mpi``.
"""

from __future__ import annotations

import pytest

from tests.helpers.commands import ROOT, execute, mpirun

PYTEST = ["-m", "pytest", "--with-mpi", "-q", "-x", "-p", "no:cacheprovider"]


def passed(ranks, *words, timeout=240):
    done = execute(mpirun(ranks, *PYTEST, *words), timeout, cwd=ROOT)
    assert done.code == 0, done.out + done.err
    assert "passed" in done.out
    assert "skipped" not in done.out, done.out


@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_on_ranks(ranks):
    passed(ranks, "-m", "mpi", "tests/mpi")


@pytest.mark.parametrize("ranks", [1, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (2, 5, 8))])
def test_parity_on_other_numbers_of_ranks(ranks):
    passed(ranks, "-m", "mpi", "-k", "do_not_change", "tests/mpi/test_parity.py", timeout=400)
