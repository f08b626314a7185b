"""The long arrays of requests: once on every machine, in memory that its ranks share, or once on every rank.

The first rank of a machine makes a file without a name that is only in memory, and the others map it for reading. All
its pages are reserved at once, so that a lack of memory is an error here and never a crash later. The size of /dev/shm
does not matter. Where a machine does not allow this, all ranks broadcast instead.

All hosts have replied to a request before the server sends the next one, so the same memory serves all requests.
"""

import mmap
import os
from typing import Any

import numpy as np
from mpi4py import MPI

from mpifed.core.typing import Array
from mpifed.mpi.plan import Plan


class LongArrays:
    """Room for the long arrays of one request at a time; all ranks make it and use it together.

    ``shared`` is the size of the memory that this rank shares, in bytes. Without ``sharing`` it never does.
    """

    def __init__(self, comm: Any, sharing: bool) -> None:
        self.comm = comm
        self.sharing = sharing
        self.shared = 0
        self.room: Array = np.empty(0, np.uint8)
        self.node: Any = None  # the ranks of this machine
        self.firsts: Any = None  # the first ranks of all machines, on these

    def spread(self, plan: Plan, arrays: list[Array] | None) -> tuple[int, int]:
        """Bring the long arrays of a request, ``arrays`` at rank 0, to all ranks; bytes that this rank sent and got."""
        if plan.room > len(self.room):
            self.grow(plan.room)
        plan.place(self.room)
        moved = (0, plan.room) if arrays is None else (plan.room, 0)
        # one broadcast for each array, not one for all: rank 0 sends from the method's own arrays without a copy
        if not self.sharing:
            for array in plan.apart if arrays is None else arrays:
                self.comm.Bcast(array, 0)
            return moved
        # no barrier before the write: hosts read the memory while they handle a request, and all have replied to it
        if arrays is not None:
            for place, array in zip(plan.apart, arrays, strict=True):
                place[...] = array
        # one message to each machine, however many ranks it has
        if self.firsts is not None:
            for array in plan.apart:
                self.firsts.Bcast(array, 0)
        # nobody reads before the first rank of its machine has written all
        self.node.Barrier()
        return (0, 0) if self.firsts is None or self.firsts.size == 1 else moved

    def grow(self, size: int) -> None:
        """Make room for ``size`` bytes, shared if the machines allow it; then all ranks do."""
        if self.sharing and self.node is None:
            self.meet()
        if self.sharing:
            room = self.offered(size)
            # all or none: ranks that share are in a barrier where the others are in a broadcast
            self.sharing = self.comm.allreduce(room is not None, MPI.LAND)
            if room is not None and self.sharing:
                self.room = room
                self.shared = size
                return
        self.room = np.empty(size, np.uint8)
        self.shared = 0

    def meet(self) -> None:
        """Find the ranks of this machine; without any machine of several ranks nothing is to be shared."""
        self.node = neighbours(self.comm)
        first = self.node.rank == 0
        # Split keeps the order of ranks, so rank 0 is the first of its machine, and of the firsts: the root of both
        firsts = self.comm.Split(0 if first else MPI.UNDEFINED, self.comm.rank)
        self.firsts = firsts if first else None
        self.sharing = self.comm.allreduce(self.node.size, MPI.MAX) > 1

    def offered(self, size: int) -> Array | None:
        """Memory of the first rank of this machine, on each of its ranks; None where this rank cannot have it."""
        file = None
        if self.node.rank == 0:
            file = made(size)
        place = self.node.bcast(None if file is None else path_and_identity(file), 0)
        room = None if place is None else mapped(place, size, self.node.rank == 0)
        # before the file is closed all have opened it: it has no name by which it could be found later
        self.node.Barrier()
        if file is not None:
            os.close(file)
        return room


def neighbours(comm: Any) -> Any:
    """The ranks of this machine, in order."""
    return comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)


def made(size: int) -> int | None:
    """A new file in memory, all its pages reserved; None where the system has no such files or not so much memory."""
    # not the shared windows of MPI: libraries put them into files in /dev/shm or /tmp, which containers keep small
    try:
        file = os.memfd_create("mpifed")
    except (AttributeError, OSError):
        return None
    # ftruncate would promise pages that are not there, and a rank that writes to one dies of SIGBUS
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        os.close(file)
        return None
    return file


def path_and_identity(file: int) -> tuple[str, tuple[int, int]]:
    """Under which name other processes find an open file, and by what they see that it is this one."""
    return f"/proc/{os.getpid()}/fd/{file}", identity(file)


def identity(file: int) -> tuple[int, int]:
    """Device and number of an open file."""
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def mapped(place: tuple[str, tuple[int, int]], size: int, writing: bool) -> Array | None:
    """The (size,) bytes of a file in memory; None where this process may not open it."""
    name, known = place
    try:
        file = os.open(name, os.O_RDWR if writing else os.O_RDONLY)
    except OSError:
        return None
    try:
        if identity(file) != known:  # in a container with process numbers of its own
            return None
        # hosts map it read-only: a method that wrote into a request would change it for its neighbours too
        access = mmap.ACCESS_WRITE if writing else mmap.ACCESS_READ
        return np.frombuffer(mmap.mmap(file, size, access=access), np.uint8)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
