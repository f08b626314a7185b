"""python -m mpifed"""

import sys

from mpifed.cli.options import runs
from mpifed.core import signals, threads


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    threads.limit()
    if runs(sys.argv[1:]):
        signals.listen()
    from mpifed.cli.main import main

    code = main()
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
