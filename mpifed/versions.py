"""What mpifed runs on."""
from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from mpifed import __version__


def versions() -> str:
    """mpifed, Python, the libraries and the MPI library that mpi4py finds, a line each."""
    lines = [("mpifed", __version__), ("Python", platform.python_version())]
    for name in ("numpy", "scipy", "h5py", "mpi4py"):
        try:
            lines.append((name, version(name)))
        except PackageNotFoundError:
            lines.append((name, "none"))
    import h5py.h5

    lines.append(("HDF5", ".".join(map(str, h5py.h5.get_libversion()))))
    try:
        from mpi4py import rc

        rc.initialize = False
        found = library()
    except (ImportError, RuntimeError) as error:
        found = f"none: {str(error).splitlines()[0]}"
    return "\n".join(f"{name:<8} {text}" for name, text in [*lines, ("MPI", found)])


def library() -> str:
    """Name and version of the MPI library; ImportError or RuntimeError where there is none."""
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
