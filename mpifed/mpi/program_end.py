"""The end of a run: on all ranks when the program fails on one, or on this machine alone when another is silent.

Python ends only the process of an uncaught exception; the other ranks would wait for it in MPI for ever.
"""

import array
import fcntl
import os
import signal
import stat
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

LAST_WORDS = 2.0  # seconds given to a launcher to read a message
SAME = 1.0  # seconds that ranks above 0 wait before an error: often all have it, and rank 0 prints it
# programs that start ranks, by the names that the kernel shows
LAUNCHERS = {"mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "prterun", "prte", "prted", "orterun", "orted"}
STEPS = {"slurmstepd"}  # a batch system's, which ends by itself

POLL = 1e-3  # seconds between looks whether a launcher has read a message


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


class Process(NamedTuple):
    """The parent and the name of a process."""

    parent: int
    name: str


def kill_local_run(code: int) -> None:
    """End all processes of the run on this machine: the launcher, everything it has started here, and this process."""
    # not MPI_Abort, in which some launchers wait for ever for their daemon on the silent machine
    processes = list_processes()
    starters = find_starters(processes)
    started = find_descendants(starters[-1], processes) if starters else set()
    # from this process upwards, because a launcher that lives would end this one before the others
    for pid in [*starters, *started.difference(starters, {os.getpid()})]:
        if processes[pid].name not in STEPS:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    os._exit(code)


def wait_until_read(descriptor: int, seconds: float) -> None:
    """Wait until a pipe is empty, ``seconds`` at most, because a launcher that ends loses what it has not read."""
    until = time.monotonic() + seconds
    unread = array.array("i", [0])
    with suppress(OSError):
        while stat.S_ISFIFO(os.fstat(descriptor).st_mode) and time.monotonic() < until:
            fcntl.ioctl(descriptor, termios.FIONREAD, unread)
            if not unread[0]:
                return
            time.sleep(POLL)


def list_processes() -> dict[int, Process]:
    """Return all processes except zombies, by id; none if the system has no /proc."""
    result = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent …", split at the outermost brackets, because a name may contain others
            number, _, rest = file.read_text().partition(" (")
        except (OSError, ValueError):  # the process has ended
            continue
        name, _, numbers = rest.rpartition(") ")
        state, parent = numbers.split()[:2]
        if state != "Z":
            result[int(number)] = Process(int(parent), name)
    return result


def find_starters(processes: dict[int, Process]) -> list[int]:
    """Return the processes that started this one, up to its launcher and the launcher of that; none without one."""
    pids = []
    pid = os.getpid()
    while pid in processes:
        pids.append(pid)
        pid = processes[pid].parent
    # up to the first launcher and launchers right above it; a shell or batch system further up is not the run's
    last = next((k for k, pid in enumerate(pids) if processes[pid].name in LAUNCHERS | STEPS), 0)
    while last and last + 1 < len(pids) and processes[pids[last + 1]].name in LAUNCHERS:
        last += 1
    return pids[1 : last + 1]


def find_descendants(base: int, processes: dict[int, Process]) -> set[int]:
    """Return the descendants of the process ``base``."""
    children = {pid for pid, process in processes.items() if process.parent == base}
    return children.union(*(find_descendants(child, processes) for child in children))
