"""The world of a run: its ranks, and the MPI library. Without MPI there is one rank, and all operations are trivial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array

News = TypeVar("News")


class World:
    """The ranks of a run without MPI: one. ``mpifed.mpi.communicator`` derives the World of several ranks."""

    rank, size = 0, 1
    first = True  # whether this is rank 0, which reads, writes and prints
    has_clients = True  # whether this rank has clients: all but rank 0, or the only rank
    library = "none"

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """Raise the error of the block on all ranks if it fails on some, with the first failing rank's message.

        All ranks enter and leave together. It is for UserError, and the RunError of a full disk.
        """
        # new exceptions with the text alone, because pickle may refuse tracebacks and users' classes
        failed: Exception | None = None
        try:
            yield
        except UserError as error:
            failed = UserError(str(error))
        except RunError as error:
            failed = RunError(str(error))
        except MemoryError as error:
            failed = UserError(f"this run does not fit in the memory of rank {self.rank}: {error}".removesuffix(": "))
        failed = self.agree(failed)
        if failed is not None:
            raise failed

    def meet(self) -> None:
        """Wait for all ranks."""

    def agree(self, news: News | None) -> News | None:
        """Return the first rank's ``news`` that is not None, such as an error, on every rank; None if all are."""
        return news

    def share(self, value: Any) -> Any:
        """Return the value of rank 0 on every rank; for small settings, not for arrays."""
        return value

    def collect(self, value: Any) -> list[Any]:
        """Return the values of all ranks at rank 0; for a few numbers, not for arrays."""
        return [value]

    def collect_rows(self, values: Array, counts: list[int]) -> Array:
        """Return the float64 arrays (c,) of all ranks, concatenated, at rank 0; ``counts`` are their lengths."""
        return np.asarray(values, float)

    def nodes(self) -> list[int]:
        """Return the machine of each rank, as the number of the first rank there; all ranks call it."""
        return [0]

    def is_fault_tolerant(self) -> bool:
        """Return whether the other ranks survive if one dies."""
        return False

    def all_alive(self) -> bool:
        """Return whether all ranks live."""
        return True

    def is_rank_failure(self, error: BaseException) -> bool:
        """Return whether an error says that a rank is dead."""
        return False

    def report_cut_off(self) -> None:
        """Tell the other ranks that this rank's run was cut off."""

    def shrink(self) -> World:
        """Return the living ranks."""
        return self

    def abort(self, code: int = 1) -> None:
        """End all ranks at once, if there are several."""


def library_version() -> str:
    """Return name and version of the MPI library without starting it; raise ImportError or RuntimeError without one."""
    from mpi4py import rc

    # importing MPI would start it, which a process that only asks for the version must not do under a launcher
    rc.initialize = False
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().strip("\0\n ").splitlines()[0].split()).split(",")[0]
