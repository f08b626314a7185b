"""The processes of a run on this machine: how all of them end where MPI's own abort would wait for another machine."""

import array
import fcntl
import os
import signal
import stat
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# what starts ranks, by the names that the kernel shows
LAUNCHERS = {"mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "prterun", "prte", "prted", "orterun", "orted"}
STEPS = {"slurmstepd"}  # the same of a batch system, which ends by itself


LOOKS = 1e-3  # seconds between looks whether a launcher has read what was said


class Process(NamedTuple):
    parent: int
    name: str


def end_all(code: int) -> None:
    """End the other ranks on this machine and what their launcher has started here, the launcher, and this process."""
    # not MPI_Abort: launchers wait for their daemon on the machine that does not answer, some of them for ever
    found = running()
    starters = above(found)
    started = below(starters[-1], found) if starters else set()
    # from this process upwards: a launcher that lives ends this one before it has ended the others
    for pid in [*starters, *started.difference(starters, {os.getpid()})]:
        if found[pid].name not in STEPS:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    os._exit(code)


def wait_until_read(descriptor: int, seconds: float) -> None:
    """Wait until a pipe is empty, ``seconds`` at most: a launcher that ends first loses what it has not read."""
    until = time.monotonic() + seconds
    unread = array.array("i", [0])
    with suppress(OSError):
        while stat.S_ISFIFO(os.fstat(descriptor).st_mode) and time.monotonic() < until:
            fcntl.ioctl(descriptor, termios.FIONREAD, unread)
            if not unread[0]:
                return
            time.sleep(LOOKS)


def running() -> dict[int, Process]:
    """All processes that are no zombies, by id; none where the system has no /proc."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent …", and a name may have blanks and brackets in it: split at the outermost ones
            number, _, rest = file.read_text().partition(" (")
        except (OSError, ValueError):  # it has ended
            continue
        name, _, numbers = rest.rpartition(") ")
        state, parent = numbers.split()[:2]
        if state != "Z":
            found[int(number)] = Process(int(parent), name)
    return found


def above(found: dict[int, Process]) -> list[int]:
    """The processes that have started this one, up to its launcher and the launcher of that; none without one."""
    pids = []
    pid = os.getpid()
    while pid in found:
        pids.append(pid)
        pid = found[pid].parent
    # up to the first launcher and those right above it; a shell or a batch system further up is the user's
    last = next((k for k, pid in enumerate(pids) if found[pid].name in LAUNCHERS | STEPS), 0)
    while last and last + 1 < len(pids) and found[pids[last + 1]].name in LAUNCHERS:
        last += 1
    return pids[1 : last + 1]


def below(base: int, found: dict[int, Process]) -> set[int]:
    """The processes that ``base`` has started, and those that they have started."""
    children = {pid for pid, process in found.items() if process.parent == base}
    return children.union(*(below(child, found) for child in children))
