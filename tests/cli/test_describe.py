"""The commands list, describe and --version."""

from __future__ import annotations

from tests.helpers.commands import mpifed


def test_list_describe_and_version():
    assert "fedgia" in mpifed("list", "algorithms").out
    told = mpifed("describe", "fedadmm").out
    for word in ("k0", "r0", "nu", "eps0", "inner_max", "0.95", "(3.3)"):
        assert word in told
    for word in ("mpifed", "Python", "numpy", "mpi4py", "MPI", "HDF5"):
        assert word in mpifed("--version").out
