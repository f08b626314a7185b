"""How the program that calls runs ends on all ranks when it fails on one.

Python ends a process of an uncaught exception by itself; the other ranks would wait for it in MPI for ever.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from mpifed.mpi.local_processes import STEPS, above, running, wait_until_read

LAST_WORDS = 2.0  # seconds in which a launcher has read a message, at most
SAME = 1.0  # seconds that ranks above 0 wait with an error: most often all have it, and rank 0 says it for all


def install(rank: int) -> None:
    """End all ranks after an uncaught exception of this one, which is told as before."""
    tell = sys.excepthook

    def failed(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if rank:
            time.sleep(SAME)
        tell(kind, error, trace)
        end_all(1)

    sys.excepthook = failed


def end_all(code: int) -> None:
    """End all ranks: by MPI where it has started, else by a signal to the launcher on this machine."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk
            stream.flush()
    # a launcher that ends loses what it has not passed on to the terminal
    wait_until_read(2, LAST_WORDS)
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_finalized():
            return
        if MPI.Is_initialized():
            if MPI.COMM_WORLD.size > 1:
                MPI.COMM_WORLD.Abort(code)
                os._exit(code)  # for Abort may return
            return
    # MPI_Init and Abort would wait for ranks that never come to a run
    found = running()
    for pid in [pid for pid in above(found) if found[pid].name not in STEPS][-1:]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
