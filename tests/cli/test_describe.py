"""The commands list, describe and --version."""

from tests.helpers.commands import mpifed


def test_list_describe_and_version_and_the_matrix_fits_on_a_screen():
    assert "fedgia" in mpifed("list", "algorithms").out
    told = mpifed("describe", "fedadmm").out
    for word in ("k0", "r0", "nu", "eps0", "inner_max", "0.95", "(3.3)"):
        assert word in told
    for word in ("mpifed", "Python", "numpy", "mpi4py", "MPI", "HDF5"):
        assert word in mpifed("--version").out
    lines = mpifed("list", "matrix").out.splitlines()
    assert max(map(len, lines)) <= 100
    (row,) = (line.split() for line in lines if line.startswith("fedgia "))
    assert row[1] == "yes"
    assert [cell.rstrip("¹²³⁴⁵⁶⁷⁸⁹") for cell in row[-2:]] == ["no", "yes"]
    assert any(" the algorithm needs lipschitz (an upper bound" in line for line in lines)
    assert mpifed("list", "matrx").err == "mpifed: unknown kind 'matrx'; did you mean 'matrix'?\n"
