"""The MPI library that mpi4py finds."""


def library() -> str:
    """Name and version of the MPI library, without starting it. ImportError or RuntimeError where there is none."""
    from mpi4py import rc

    # importing MPI starts it, and a process that only asks for the version may not be one that a launcher expects
    rc.initialize = False
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
