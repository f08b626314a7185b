"""The end of a program on all ranks when it fails on one.

Python ends only the process of an uncaught exception; the other ranks would wait for it in MPI for ever.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from mpifed.mpi.local_processes import STEPS, find_starters, list_processes, wait_until_read

LAST_WORDS = 2.0  # seconds given to a launcher to read a message
SAME = 1.0  # seconds that ranks above 0 wait before an error: often all have it, and rank 0 prints it


def install(rank: int) -> None:
    """Install a hook that ends all ranks after an uncaught exception of this one, which is printed as before."""
    print_error = sys.excepthook

    def end_after_error(cls: type[BaseException], error: BaseException, trace: Any) -> None:
        if rank:
            time.sleep(SAME)
        print_error(cls, error, trace)
        end_all_ranks(1)

    sys.excepthook = end_after_error


def end_all_ranks(code: int) -> None:
    """End all ranks: by MPI where it has started, else by a signal to the launcher on this machine."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk
            stream.flush()
    # a launcher that ends loses messages that it has not passed on to the terminal
    wait_until_read(2, LAST_WORDS)
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_finalized():
            return
        if MPI.Is_initialized():
            if MPI.COMM_WORLD.size > 1:
                MPI.COMM_WORLD.Abort(code)
                os._exit(code)  # because Abort may return
            return
    # MPI_Init and Abort would wait for ranks that never begin a run
    processes = list_processes()
    for pid in [pid for pid in find_starters(processes) if processes[pid].name not in STEPS][-1:]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
