"""The memory of the long arrays of requests: shared by the ranks of a machine, or of each rank.

The first rank of a machine makes an anonymous file in memory, and the others map it for reading. All its pages are
reserved at once, so that a lack of memory is an error here and never a crash later. The size of /dev/shm does not
matter. If a machine does not allow this, all ranks broadcast instead.

All hosts have replied to a request before the server sends the next one, so one memory serves all requests.
"""

import mmap
import os
from typing import Any

import numpy as np
from mpi4py import MPI

from mpifed.core.typing import Array
from mpifed.mpi.plan import MessagePlan


class LongArrays:
    """Memory for the long arrays of one request at a time, made and used by all ranks together.

    ``shared`` is the size in bytes of the memory that this rank shares; without ``sharing`` it shares none.
    """

    def __init__(self, comm: Any, sharing: bool) -> None:
        self.comm = comm
        self.sharing = sharing
        self.shared = 0
        self.room: Array = np.empty(0, np.uint8)
        self.node: Any = None  # the ranks of this machine
        self.firsts: Any = None  # the first ranks of all machines; None on other ranks

    def spread(self, plan: MessagePlan, arrays: list[Array] | None) -> tuple[int, int]:
        """Send ``arrays`` of rank 0 (None on others) to all ranks; return the bytes sent and received by this rank."""
        if plan.room > len(self.room):
            self.allocate(plan.room)
        plan.use_memory(self.room)
        moved = (0, plan.room) if arrays is None else (plan.room, 0)
        # one broadcast for each array, so that rank 0 sends the method's own arrays without a copy
        if not self.sharing:
            for array in plan.long_views if arrays is None else arrays:
                self.comm.Bcast(array, 0)
            return moved
        # no barrier before writing: hosts read the memory only while they handle a request, and all have replied
        if arrays is not None:
            for view, array in zip(plan.long_views, arrays, strict=True):
                view[...] = array
        # one message to each machine
        if self.firsts is not None:
            for array in plan.long_views:
                self.firsts.Bcast(array, 0)
        # no rank reads before the first rank of its machine has written everything
        self.node.Barrier()
        return (0, 0) if self.firsts is None or self.firsts.size == 1 else moved

    def allocate(self, size: int) -> None:
        """Make memory of ``size`` bytes, shared if all machines allow it."""
        if self.sharing and self.node is None:
            self.find_machine()
        if self.sharing:
            room = self.share_memory(size)
            # all or none, because ranks that share call a barrier where others would call a broadcast
            self.sharing = self.comm.allreduce(room is not None, MPI.LAND)
            if room is not None and self.sharing:
                self.room = room
                self.shared = size
                return
        self.room = np.empty(size, np.uint8)
        self.shared = 0

    def find_machine(self) -> None:
        """Find the ranks of this machine; if no machine has several ranks, nothing is shared."""
        self.node = split_by_machine(self.comm)
        first = self.node.rank == 0
        # Split keeps the order of ranks, so rank 0 is first, and the root, in both communicators
        firsts = self.comm.Split(0 if first else MPI.UNDEFINED, self.comm.rank)
        self.firsts = firsts if first else None
        self.sharing = self.comm.allreduce(self.node.size, MPI.MAX) > 1

    def share_memory(self, size: int) -> Array | None:
        """Return memory of the first rank of this machine on each of its ranks, or None if this rank cannot map it."""
        file = None
        if self.node.rank == 0:
            file = make_memory_file(size)
        location = self.node.bcast(None if file is None else locate_file(file), 0)
        room = None if location is None else map_file(location, size, self.node.rank == 0)
        # the file is closed after all have opened it, because it has no name by which to find it later
        self.node.Barrier()
        if file is not None:
            os.close(file)
        return room


def split_by_machine(comm: Any) -> Any:
    """Return the communicator of the ranks of this machine, in order."""
    return comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)


def make_memory_file(size: int) -> int | None:
    """Make a file in memory with all pages reserved; return None if the system has no such files or memory."""
    # not MPI's shared windows, which libraries put into /dev/shm or /tmp, small in containers
    try:
        file = os.memfd_create("mpifed")
    except (AttributeError, OSError):
        return None
    # ftruncate would not reserve pages, and a rank that wrote to a missing one would die of SIGBUS
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        os.close(file)
        return None
    return file


def locate_file(file: int) -> tuple[str, tuple[int, int]]:
    """Return the name by which other processes open a file, and its identity, by which they verify it."""
    return f"/proc/{os.getpid()}/fd/{file}", file_identity(file)


def file_identity(file: int) -> tuple[int, int]:
    """Return device and inode of an open file."""
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def map_file(location: tuple[str, tuple[int, int]], size: int, writing: bool) -> Array | None:
    """Map a file in memory as bytes (size,); return None if this process may not open it."""
    name, expected = location
    try:
        file = os.open(name, os.O_RDWR if writing else os.O_RDONLY)
    except OSError:
        return None
    try:
        if file_identity(file) != expected:  # another file, as in a container with its own process numbers
            return None
        # read-only on hosts, because a method that wrote to a request would change it for other ranks
        access = mmap.ACCESS_WRITE if writing else mmap.ACCESS_READ
        return np.frombuffer(mmap.mmap(file, size, access=access), np.uint8)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
