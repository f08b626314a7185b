"""The MPI library that mpi4py finds."""


def library() -> str:
    """Name and version of the MPI library, without starting it. ImportError or RuntimeError where there is none."""
    from mpi4py import rc

    rc.initialize = False
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
