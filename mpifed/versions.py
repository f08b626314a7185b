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
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI

        library = " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
    except (ImportError, RuntimeError) as error:
        library = f"none: {str(error).splitlines()[0]}"
    return "\n".join(f"{name:<8} {text}" for name, text in [*lines, ("MPI", library)])
