"""The ranks of a run. The only importer of mpi4py."""

from __future__ import annotations

import os
import socket
import sys
import time
import warnings
from collections import Counter
from copy import copy
from typing import Any, cast

import mpi4py
import numpy as np

from mpifed.core.errors import Trouble, UserError
from mpifed.core.typing import Array
from mpifed.mpi.library import library

# World starts MPI, once it knows that launcher and library go together; before, a library may end the process
if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
from mpi4py import MPI

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # what mpirun --with-ft ulfm sets
NAP, LONGEST_NAP = 2e-5, 1e-3  # seconds between looks whether all ranks are there

shrunk = False  # whether ranks have died


def leave(code: int) -> None:
    """End this process; where ranks have died without MPI_Finalize, which may wait for them."""
    if shrunk:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def patiently(request: Any, longest: float = NAP) -> None:
    """Wait for an MPI request with naps of up to ``longest`` seconds, for waiting in MPI takes a core."""
    nap = NAP
    while not request.Test():
        time.sleep(nap)
        nap = min(2 * nap, longest)


class World:
    """The ranks of this run; a mismatch of launcher and MPI library is refused."""

    def __init__(self, announced: int | None = None, launcher: str = "") -> None:
        if launcher == "Open MPI" and launcher not in library():
            raise UserError(mismatch(announced))
        if not MPI.Is_initialized():
            with warnings.catch_warnings(action="ignore"):  # of a launcher that does not go with the library
                MPI.Init()
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self.library = library()
        if announced is not None and announced > 1 and self.size == 1:
            raise UserError(mismatch(announced))

    def crowded(self) -> bool:
        """Whether ranks share cores on any machine; to be asked by all ranks."""
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
        ranks: Counter[str] = Counter()
        free: dict[str, set[int]] = {}
        for host, mine in self.comm.allgather((socket.gethostname(), cores)):
            ranks[host] += 1
            free[host] = free.get(host, set()) | mine
        return any(len(free[host]) < count for host, count in ranks.items())

    def meet(self) -> None:
        """Wait for all ranks, and leave the core to those who are still at work."""
        if not self.survives():  # a pending Ibarrier does not notice that a rank is dead
            patiently(self.comm.Ibarrier(), LONGEST_NAP)

    def share(self, value: Any) -> Any:
        """The value of rank 0, on every rank; for small settings, not for arrays."""
        self.meet()
        return self.comm.bcast(value, 0)

    def agree(self, error: str | None) -> str | None:
        """The first rank's error, on every rank, or None where all is well."""
        self.meet()
        return next((e for e in self.comm.allgather(error) if e is not None), None)

    def collect(self, value: Any) -> list[Any]:
        """The values of all ranks, at rank 0; for a few numbers, not for arrays."""
        return self.comm.gather(value, 0) or []

    def collect_rows(self, values: Array, counts: list[int]) -> Array:
        """The (c,) float64 arrays of all ranks one after the other, at rank 0; ``counts`` their lengths."""
        out = np.empty(sum(counts)) if self.rank == 0 else None
        self.comm.Gatherv(np.ascontiguousarray(values, float), (out, counts) if self.rank == 0 else None, 0)
        return np.zeros(0) if out is None else out

    def survives(self) -> bool:
        """Whether the launcher lets the others live when a rank dies."""
        return self.size > 1 and os.environ.get(FAULT_TOLERANT) == "1" and "Open MPI" in self.library

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that a rank is dead."""
        return isinstance(error, MPI.Exception) and error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)

    def unhurt(self) -> bool:
        """Whether all ranks come here; the same answer on all that live, and on those who go to ``shrink`` instead."""
        try:
            self.comm.Barrier()
            fine = True
        except MPI.Exception:
            fine = False
        return self._agreed(fine)

    def hurt(self) -> None:
        """What a rank says whose run was cut off: the others will not come to ``unhurt`` with all."""
        self._agreed(False)

    def _agreed(self, fine: bool) -> bool:
        if not fine and not self.comm.Is_revoked():
            self.comm.Revoke()  # so that nobody waits in another call
        try:
            return bool(self.comm.Agree(int(fine)))
        except MPI.Exception:
            return False

    def shrink(self) -> World:
        """The ranks that live. Trouble where rank 0 is not among them."""
        other = copy(self)
        other.comm = cast(MPI.Intracomm, self.comm.Shrink())
        other.rank, other.size = other.comm.rank, other.comm.size
        global shrunk
        shrunk = True
        if 0 not in other.comm.allgather(self.rank):
            raise Trouble("rank 0, the server, is dead: resume goes on from the last checkpoint")
        return other

    def abort(self, code: int = 1) -> None:
        """End every rank at once."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.comm.Abort(code)
        os._exit(code)  # for Abort may return


def mismatch(announced: int | None) -> str:
    """What to say when launcher and library do not go together."""
    return (
        f"the launcher started {announced} processes, but mpi4py uses {library()}, which knows nothing of it: start them "
        "with the mpirun (or srun --mpi=...) of that library, or set MPI4PY_LIBMPI"
    )
