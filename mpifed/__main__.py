"""python -m mpifed"""

import sys

from mpifed.cli.options import runs
from mpifed.core import encodings, signals, threads
from mpifed.mpi.launcher import announced


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    threads.limit()
    encodings.tolerate()
    # ranks listen once MPI has started: it may wait for a rank that never comes, and then a signal has to end it
    ranks = announced()[0] is not None
    if runs(sys.argv[1:]) and not ranks:
        signals.listen()
    from mpifed.cli.main import main

    code = main(connected=signals.listen if ranks else None)
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
