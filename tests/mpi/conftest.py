"""What tests on several ranks share."""

from __future__ import annotations

import sys

import pytest

if (
    "--with-mpi" in sys.argv
):  # MPI starts before mpifed tells mpi4py to wait: pytest-mpi asks for the ranks at collection
    from mpi4py import MPI  # noqa: F401


@pytest.fixture
def world():
    """The ranks of this test."""
    from mpifed.mpi.communicator import Communicator

    return Communicator()


@pytest.fixture(autouse=True)
def together(request):
    """All ranks begin a test at the same time; those who wait leave the cores to the others."""
    if request.config.getoption("--with-mpi"):
        request.getfixturevalue("world").meet()
