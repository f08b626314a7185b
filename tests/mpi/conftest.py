"""What tests on several ranks share."""

from __future__ import annotations

import pytest


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
