"""The ranks of a run under MPI."""

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
from typing import Any, cast

import mpi4py
import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.mpi.library import library
from mpifed.mpi.local_processes import wait_until_read
from mpifed.mpi.program_end import LAST_WORDS, SAME, end_all
from mpifed.mpi.world import News, World

# Communicator starts MPI, after it has checked that launcher and library match; else a library may end the process
if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True
from mpi4py import MPI

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # what mpirun --with-ft ulfm sets
DETECTED = 2.0  # seconds in which MPI has noticed that a rank is dead
NAP = 2e-5  # seconds between looks whether all ranks are there, at least
LONGEST_NAP = 1e-3  # and at most
WITHOUT_SERVER = (
    "rank 0, the server, died, and other ranks cannot take its place: the run ends, and resume goes on from the last "
    "checkpoint"
)

shrunk = False  # whether ranks have died
guarded = False  # whether ranks meet when their programs end


def leave(code: int) -> None:
    """End this process; where ranks have died without MPI_Finalize, which may wait for them."""
    if shrunk:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def patiently(done: Callable[[], bool]) -> None:
    """Wait until ``done`` with naps, for waiting in MPI takes a core.

    A nap is a tenth of the wait so far: the end is missed by little, and ranks that compute keep a core and its cache.
    """
    begun = time.perf_counter()
    while not done():
        time.sleep(min(max((time.perf_counter() - begun) / 10, NAP), LONGEST_NAP))


class Communicator(World):
    """The ranks that a launcher started. Raises UserError where launcher and MPI library do not belong together."""

    def __init__(self, announced: int | None = None, launcher: str = "") -> None:
        # another library under Open MPI's mpirun may end the process in MPI_Init, before Python can say a word
        if launcher == "Open MPI" and launcher not in library():
            raise UserError(mismatch(announced))
        if not MPI.Is_initialized():
            with warnings.catch_warnings(action="ignore"):  # of a launcher that does not go with the library
                MPI.Init()
        self.place(MPI.COMM_WORLD)
        self.library = library()
        self.cores_shared: bool | None = None  # of a group, where other groups count too
        # the other way round each process comes up as the only rank, and would run the whole study by itself
        if announced is not None and announced > 1 and self.size == 1:
            raise UserError(mismatch(announced))

    def place(self, comm: MPI.Intracomm) -> None:
        """Take the ranks of ``comm`` for all there are."""
        self.comm = comm
        self.rank, self.size = comm.rank, comm.size
        self.first = self.rank == 0
        self.hosting = self.size == 1 or not self.first

    def crowded(self) -> bool:
        """Whether ranks share cores on any machine; all ranks must call it."""
        if self.cores_shared is not None:
            return self.cores_shared
        # what a launcher has bound this rank to, not what the machine has
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
        machines = defaultdict(list)
        for host, mine in self.comm.allgather((socket.gethostname(), cores)):
            machines[host].append(mine)
        return any(len(set.union(*found)) < len(found) for found in machines.values())

    def meet(self) -> None:
        """Wait for all ranks, and leave the core to those that still work."""
        if self.survives():  # what is pending does not notice that a rank is dead
            return
        gone, speaker = self._met(leaving=False)
        if gone >= 0:
            if self.rank != speaker:
                time.sleep(SAME)
            sys.stderr.write(
                f"mpifed: rank {gone} has left the program, and the others wait for it in a run: every rank must make "
                "the same calls\n"
            )
            self.abort(1)

    def _met(self, leaving: bool) -> tuple[int, int]:
        """Once all ranks are here: one that leaves its program, or −1, and the first that does not."""
        mine = np.array([self.rank, -self.size] if leaving else [-1, -self.rank])
        found = np.empty_like(mine)
        patiently(self.comm.Iallreduce(mine, found, MPI.MAX).Test)
        return int(found[0]), -int(found[1])

    def guard(self) -> None:
        """Have this rank meet the others when its program ends: those that wait for it in a run learn of it."""
        global guarded
        if self.size > 1 and not self.survives() and not guarded:
            guarded = True
            atexit.register(lambda: MPI.Is_finalized() or self._met(leaving=True))

    def share(self, value: Any) -> Any:
        # ranks may be minutes apart here, while rank 0 reads data: bcast would keep all cores busy with waiting
        self.meet()
        return self.comm.bcast(value, 0)

    def agree(self, news: News | None) -> News | None:
        self.meet()
        return next((found for found in self.comm.allgather(news) if found is not None), None)

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

    def survives(self) -> bool:
        return self.size > 1 and os.environ.get(FAULT_TOLERANT) == "1" and "Open MPI" in self.library

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that a rank is dead, or comes from a message that its death cut off."""
        if isinstance(error, MPI.Exception):
            return error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)
        # half of a message unpacks to nonsense before MPI knows of the death; sentences of our own are no such nonsense
        deadline = time.monotonic() + (0 if isinstance(error, UserError | RunError) else DETECTED)
        while not (self.comm.Is_revoked() or self.comm.Get_failed().size):
            if time.monotonic() >= deadline:
                return False
            time.sleep(LONGEST_NAP)
        return True

    def unhurt(self) -> bool:
        """Whether all ranks come here; the same answer on all that live, and on those in ``hurt``."""
        try:
            self.comm.Barrier()
            fine = True
        except MPI.Exception:
            fine = False
        return self._agreed(fine)

    def hurt(self) -> None:
        """For a rank whose run was cut off: the others learn in ``unhurt`` that not all ranks come."""
        self._agreed(False)

    def _agreed(self, fine: bool) -> bool:
        if not fine and not self.comm.Is_revoked():
            self.comm.Revoke()  # so that no rank waits in another call
        # Agree works on a revoked communicator, as no other collective does but Shrink; it raises where ranks that died
        # have not been acknowledged, and then not all are fine
        try:
            return bool(self.comm.Agree(int(fine)))
        except MPI.Exception:
            return False

    def shrink(self) -> Communicator:
        """The ranks that live. RunError where rank 0 is not among them, which the first of them says."""
        other = copy(self)
        other.place(cast(MPI.Intracomm, self.comm.Shrink()))
        global shrunk
        shrunk = True
        if 0 not in other.comm.allgather(self.rank):
            if other.first:  # the command leaves that to rank 0
                sys.stderr.write(f"mpifed: {WITHOUT_SERVER}\n")
                sys.stderr.flush()
                wait_until_read(2, LAST_WORDS)
            raise RunError(WITHOUT_SERVER)
        return other

    def abort(self, code: int = 1) -> None:
        if self.size == 1:
            return
        end_all(code)


def mismatch(announced: int | None) -> str:
    """What to say when launcher and library do not go together."""
    return (
        f"the launcher started {announced} processes, but mpi4py uses {library()}, which does not know of them: "
        "start them with the mpirun (or srun --mpi=...) of that library, or set MPI4PY_LIBMPI"
    )
