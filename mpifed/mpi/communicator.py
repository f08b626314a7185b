"""The communicator: the ranks of a run under MPI, and groups of them that run studies independently."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, cast

import mpi4py
import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.mpi.program_end import LAST_WORDS, SAME, end_all_ranks, wait_until_read
from mpifed.mpi.world import News, World, library_version

# Communicator starts MPI, after checking that launcher and library match; otherwise a library may end the process
if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True
from mpi4py import MPI

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by mpirun --with-ft ulfm
DETECTED = 2.0  # seconds until MPI has noticed that a rank is dead
NAP = 2e-5  # shortest sleep in seconds of a waiting rank
LONGEST_NAP = 1e-3  # longest one
WITHOUT_SERVER = (
    "rank 0, the server, died, and other ranks cannot take its place: the run ends, and resume goes on from the last "
    "checkpoint"
)

shrunk = False  # whether ranks have died
guarded = False  # whether ranks meet at the end of their programs


def leave(code: int) -> None:
    """End this process; if ranks have died, without MPI_Finalize, which may wait for them."""
    if shrunk:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait_patiently(done: Callable[[], bool]) -> None:
    """Wait until ``done`` returns true, sleeping in between, because waiting in MPI occupies a core.

    A sleep is a tenth of the wait so far: it ends in time, and ranks that compute keep a core and its cache.
    """
    begun = time.perf_counter()
    while not done():
        time.sleep(min(max((time.perf_counter() - begun) / 10, NAP), LONGEST_NAP))


class Communicator(World):
    """The ranks that a launcher started; raise UserError if launcher and MPI library do not belong together."""

    def __init__(self, announced: int | None = None, launcher: str = "") -> None:
        # another library under Open MPI's mpirun may end the process in MPI_Init, before Python can report it
        if launcher == "Open MPI" and launcher not in library_version():
            raise UserError(describe_mismatch(announced))
        if not MPI.Is_initialized():
            with warnings.catch_warnings(action="ignore"):  # about a launcher of another library
                MPI.Init()
        self.set_ranks(MPI.COMM_WORLD)
        self.library = library_version()
        self.cores_shared: bool | None = None  # for a group, which shares cores with other groups
        # under the launcher of another library each process is the only rank, and would run the full study
        if announced is not None and announced > 1 and self.size == 1:
            raise UserError(describe_mismatch(announced))

    def set_ranks(self, comm: MPI.Intracomm) -> None:
        """Set the communicator, and this rank's number in it."""
        self.comm = comm
        self.rank, self.size = comm.rank, comm.size
        self.first = self.rank == 0
        self.has_clients = self.size == 1 or not self.first

    def shares_cores(self) -> bool:
        """Return whether ranks share cores on any machine; all ranks must call it."""
        if self.cores_shared is not None:
            return self.cores_shared
        # the cores that the launcher has bound this rank to, not those of the machine
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
        machines = defaultdict(list)
        for host, mine in self.comm.allgather((socket.gethostname(), cores)):
            machines[host].append(mine)
        return any(len(set.union(*sets)) < len(sets) for sets in machines.values())

    def meet(self) -> None:
        """Wait for all ranks without taking the core of those that still work."""
        if self.is_fault_tolerant():  # a pending call does not notice that a rank is dead
            return
        gone, speaker = self._meet_all(leaving=False)
        if gone >= 0:
            if self.rank != speaker:
                time.sleep(SAME)
            sys.stderr.write(
                f"mpifed: rank {gone} has left the program, and the others wait for it in a run: every rank must make "
                "the same calls\n"
            )
            self.abort(1)

    def _meet_all(self, leaving: bool) -> tuple[int, int]:
        """Wait for all ranks; return a rank that leaves its program, or −1, and the first that does not."""
        mine = np.array([self.rank, -self.size] if leaving else [-1, -self.rank])
        maxima = np.empty_like(mine)
        wait_patiently(self.comm.Iallreduce(mine, maxima, MPI.MAX).Test)
        return int(maxima[0]), -int(maxima[1])

    def guard(self) -> None:
        """Let this rank meet the others when its program ends, so that ranks waiting for it in a run learn of it."""
        global guarded
        if self.size > 1 and not self.is_fault_tolerant() and not guarded:
            guarded = True
            atexit.register(lambda: MPI.Is_finalized() or self._meet_all(leaving=True))

    def share(self, value: Any) -> Any:
        # rank 0 may read data for minutes first, and waiting in bcast would keep all cores busy
        self.meet()
        return self.comm.bcast(value, 0)

    def agree(self, news: News | None) -> News | None:
        self.meet()
        return next((one for one in self.comm.allgather(news) if one is not None), None)

    def collect(self, value: Any) -> list[Any]:
        return self.comm.gather(value, 0) or []

    def collect_rows(self, values: Array, counts: list[int]) -> Array:
        out = np.empty(sum(counts)) if self.rank == 0 else None
        self.comm.Gatherv(np.ascontiguousarray(values, float), (out, counts) if self.rank == 0 else None, 0)
        return np.zeros(0) if out is None else out

    def nodes(self) -> list[int]:
        node = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        first = node.bcast(self.rank, 0)
        node.Free()
        return self.comm.allgather(first)

    def is_fault_tolerant(self) -> bool:
        return self.size > 1 and os.environ.get(FAULT_TOLERANT) == "1" and "Open MPI" in self.library

    def is_rank_failure(self, error: BaseException) -> bool:
        """Return whether an error says that a rank is dead, or comes from a message that its death cut off."""
        if isinstance(error, MPI.Exception):
            return error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)
        # half a message may raise anything before MPI notices the death, except mpifed's own errors
        deadline = time.monotonic() + (0 if isinstance(error, UserError | RunError) else DETECTED)
        while not (self.comm.Is_revoked() or self.comm.Get_failed().size):
            if time.monotonic() >= deadline:
                return False
            time.sleep(LONGEST_NAP)
        return True

    def all_alive(self) -> bool:
        """Return whether all ranks come here, alike on all living ranks, those in ``report_cut_off`` included."""
        try:
            self.comm.Barrier()
            fine = True
        except MPI.Exception:
            fine = False
        return self._agree_all(fine)

    def report_cut_off(self) -> None:
        """Tell ranks in ``all_alive`` that this rank's run was cut off."""
        self._agree_all(False)

    def _agree_all(self, fine: bool) -> bool:
        """Return whether all ranks are ``fine``, alike on all."""
        if not fine and not self.comm.Is_revoked():
            self.comm.Revoke()  # so that no rank waits in another call
        # only Agree and Shrink work on a revoked communicator; Agree raises if a dead rank has not been acknowledged
        try:
            return bool(self.comm.Agree(int(fine)))
        except MPI.Exception:
            return False

    def shrink(self) -> Communicator:
        """Return the living ranks; raise RunError, which the first of them prints, if rank 0 is dead."""
        other = copy(self)
        other.set_ranks(cast(MPI.Intracomm, self.comm.Shrink()))
        global shrunk
        shrunk = True
        if 0 not in other.comm.allgather(self.rank):
            if other.first:  # the command line prints at rank 0 only
                sys.stderr.write(f"mpifed: {WITHOUT_SERVER}\n")
                sys.stderr.flush()
                wait_until_read(2, LAST_WORDS)
            raise RunError(WITHOUT_SERVER)
        return other

    def abort(self, code: int = 1) -> None:
        if self.size == 1:
            return
        end_all_ranks(code)


def describe_mismatch(announced: int | None) -> str:
    """Return the error message for a launcher and an MPI library that do not belong together."""
    return (
        f"the launcher started {announced} processes, but mpi4py uses {library_version()}, which does not know of "
        "them: "
        "start them with the mpirun (or srun --mpi=...) of that library, or set MPI4PY_LIBMPI"
    )


class Mailbox:
    """A mailbox of small messages between the first ranks of groups; waiting for one takes no core."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.size = comm.size

    def send(self, value: Any, to: int, tag: int) -> None:
        """Send a message; a small one does not wait for its receiver."""
        self.comm.send(value, to, tag)

    def sender(self, tag: int) -> int | None:
        """Return the rank whose message has arrived, or None."""
        status = MPI.Status()
        return status.Get_source() if self.comm.Iprobe(MPI.ANY_SOURCE, tag, status) else None

    def receive(self, source: int, tag: int) -> Any:
        """Receive the next message of a rank."""
        # recv would occupy a core, and the receiver may wait for as long as a run takes
        wait_patiently(lambda: self.comm.Iprobe(source, tag))
        return self.comm.recv(source=source, tag=tag)


class RankGroup(NamedTuple):
    """A group of ranks as a world, with the mailbox at its first rank; both are None on ranks left over."""

    world: Communicator | None
    mailbox: Mailbox | None

    def free(self) -> None:
        """Free the communicators of the group; all its ranks call it."""
        if self.mailbox is not None:
            self.mailbox.comm.Free()
        if self.world is not None:
            self.world.comm.Free()


def split_ranks(world: World, size: int) -> RankGroup:
    """Split all ranks into groups of ``size`` consecutive ones; return this rank's group. All ranks call it."""
    # without an MPI launcher, groups have been refused before
    world = cast(Communicator, world)
    left_over = world.size % size
    color = world.rank // size if world.rank < world.size - left_over else MPI.UNDEFINED
    # before the split, because ranks of other groups may share cores too
    crowded = world.shares_cores()
    comm = cast(MPI.Intracomm, world.comm.Split(color, world.rank))
    first = color != MPI.UNDEFINED and comm.rank == 0
    # all ranks, even those left over, take part in this split, which is collective
    leaders = cast(MPI.Intracomm, world.comm.Split(0 if first else MPI.UNDEFINED, world.rank))
    if color == MPI.UNDEFINED:
        return RankGroup(None, None)
    group = copy(world)
    group.set_ranks(comm)
    group.cores_shared = crowded
    return RankGroup(group, Mailbox(leaders) if first else None)
