"""python -m mpifed"""

import sys

from mpifed.cli.options import runs
from mpifed.core import output, signals, threads
from mpifed.mpi.launcher import announced


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    threads.limit()
    out = output.install()
    # ranks listen once MPI has started: it may wait for a rank that never comes, and then a signal has to end it
    ranks = announced()[0] is not None
    if runs(sys.argv[1:]) and not ranks:
        signals.listen()
    from mpifed.cli.main import main
    from mpifed.core.errors import reason

    code = main(connected=signals.listen if ranks else None)
    if out is not None:
        out.flush()
        if out.lost is not None:
            sys.stderr.write(f"mpifed: what this command prints cannot be written: {reason(out.lost)}\n")
            code = code or 1
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
