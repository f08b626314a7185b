"""python -m mpifed"""

import os
import sys


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if not set(sys.argv[1:2]) & {"show", "compare", "plot", "list", "describe", "data", "--version", "-h", "--help"}:
        from mpifed.core import signals

        signals.listen()
    from mpifed.cli.main import main

    code = main()
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
