"""What tests on several ranks share."""

import os
import sys
import tempfile

import pytest

if "--with-mpi" in sys.argv:
    import mpi4py.MPI  # noqa: F401  # pytest-mpi asks for the ranks before mpifed starts MPI

    own = tempfile.TemporaryDirectory(prefix="pytest-rank-")  # ranks that share a folder remove each other's old ones
    os.environ["PYTEST_DEBUG_TEMPROOT"] = own.name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests without the marker need no ranks; pytest-mpi skips them too, for it finds its word in their path."""
    for item in items:
        if item.get_closest_marker("mpi") is None:
            item.own_markers = [marker for marker in item.own_markers if marker.name != "skip"]


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
