"""python -m mpifed"""

import sys

from mpifed.core import threads


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    threads.limit()
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
