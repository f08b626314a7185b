"""Start the tests of tests/mpi on several ranks, in a process group that cannot outlive its time.

By hand: ``mpirun -n 3 python -m pytest --with-mpi -m mpi tests/mpi``.
"""

import pytest

from tests.helpers.commands import ROOT, execute, mpifed, mpirun
from tests.helpers.killed_runs import content
from tests.helpers.studies import STUDIES

PYTEST = ["-m", "pytest", "--with-mpi", "-q", "-x", "-p", "no:cacheprovider"]


def passed(ranks, *words, timeout=240):
    done = execute(mpirun(ranks, *PYTEST, *words), timeout, cwd=ROOT)
    assert done.code == 0, done.out + done.err
    assert "passed" in done.out
    assert "skipped" not in done.out, done.out


@pytest.mark.parametrize("which", ["not fast", pytest.param("fast", marks=pytest.mark.fast)])
def test_on_three_ranks(which):
    passed(3, "-m", f"mpi and not slow and {which}", "tests/mpi")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (4, ["tests/mpi"]),
        *((ranks, ["tests/mpi/test_reductions.py"]) for ranks in (2, 5, 8)),
        *((ranks, ["-k", "do_not_change", "tests/mpi/test_parity.py"]) for ranks in (1, 5)),
    ],
)
def test_all_and_on_other_numbers_of_ranks(ranks, words):
    passed(ranks, "-m", "mpi and not fast", *words, timeout=400)


def test_one_rank_has_the_bits_of_a_process_without_mpi(tmp_path):
    for ranks in (None, 1):
        assert mpifed("run", *STUDIES["fedgia"], "-q", "-o", tmp_path / f"{ranks}.h5", ranks=ranks).code == 0
    assert content(tmp_path / "1.h5") == content(tmp_path / "None.h5")
