"""The tests in tests/ranks need several ranks: they run under mpirun, in a process group that cannot outlive its time."""

from __future__ import annotations

import pytest
from conftest import ROOT, execute, mpirun


@pytest.mark.parametrize("ranks", [4])
def test_under_mpirun(ranks):
    words = ("-m", "pytest", "--with-mpi", "-q", "-x", "-p", "no:cacheprovider", ROOT / "tests" / "ranks")
    done = execute(mpirun(ranks, *words), 120)
    assert done.code == 0, done.out + done.err
    assert "passed" in done.out
    assert "skipped" not in done.out, done.out
