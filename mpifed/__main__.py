"""The command line, ``python -m mpifed``."""

import sys

from mpifed.cli.arguments import starts_runs
from mpifed.core import output, processor, signals
from mpifed.mpi.launcher import read_launcher


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    processor.limit_blas_threads()
    out = output.install_streams()
    # ranks listen only once MPI has started: before, a signal has to end a wait for a rank that never comes
    ranks = read_launcher()[0] is not None
    if starts_runs(sys.argv[1:]) and not ranks:
        signals.listen_for_signals()
    from mpifed.cli.main import main
    from mpifed.core.errors import reason

    code = main(connected=signals.listen_for_signals if ranks else None)
    if out is not None:
        out.flush()
        if out.write_error is not None:
            sys.stderr.write(f"mpifed: what this command prints cannot be written: {reason(out.write_error)}\n")
            code = code or 1
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
