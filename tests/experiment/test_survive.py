"""--survive: the others go on when a client rank dies, where the MPI library can."""

import re
import subprocess
import sys

import pytest

from tests.helpers.commands import ROOT, execute, mpifed, mpirun

KILLS = "tests.helpers.killed_runs"


def open_mpi():
    launcher = str(mpirun(1)[0])
    return "Open MPI" in subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout


def test_where_the_launcher_ends_all_ranks_it_is_refused(tmp_path):
    done = mpifed("run", "--survive", "-q", "-o", tmp_path / "out.h5")
    assert done.code == 2
    assert re.search(
        r"^mpifed: --survive needs Open MPI's mpirun --with-ft ulfm, for other launchers end all ranks when one "
        "dies; resume goes on from the last checkpoint everywhere$",
        done.err,
        re.M,
    ), done.err
    assert not list(tmp_path.iterdir())


def test_runs_that_lose_a_rank_end_with_the_same_bits(tmp_path):
    if not open_mpi():
        pytest.skip("this MPI library does not survive a dead rank")
    done = execute([sys.executable, "-m", KILLS, "--survive", "4"], 200, ROOT, TMPDIR=str(tmp_path))
    assert "4 of 4 runs of four ranks that lost one equal the undisturbed one to the bit" in done.out, (
        done.out + done.err
    )
