"""Start the tests of tests/mpi on several ranks, in a process group that cannot outlive its time.

By hand: ``mpirun -n 3 python -m pytest --with-mpi -m mpi tests/mpi``.
"""

from __future__ import annotations

import pytest

from tests.helpers.commands import ROOT, execute, mpirun


@pytest.mark.parametrize("ranks", [3])
def test_under_mpirun(ranks):
    words = ("-m", "pytest", "--with-mpi", "-m", "mpi", "-q", "-x", "-p", "no:cacheprovider", "tests/mpi")
    done = execute(mpirun(ranks, *words), 120, cwd=ROOT)
    assert done.code == 0, done.out + done.err
    assert "passed" in done.out
    assert "skipped" not in done.out, done.out
