"""The MPI library that mpi4py finds."""


def library_version() -> str:
    """Return name and version of the MPI library without starting it; raise ImportError or RuntimeError without one."""
    from mpi4py import rc

    # importing MPI would start it, which a process that only asks for the version must not do under a launcher
    rc.initialize = False
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
