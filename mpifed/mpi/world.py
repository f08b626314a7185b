"""The ranks of a run, as a run without MPI sees them: one rank, which agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array

News = TypeVar("News")


class World:
    """One rank, without MPI. With several, ``mpifed.mpi.communicator`` has a World of the same methods."""

    rank, size = 0, 1
    first = True  # whether this is rank 0, which reads, writes and speaks
    hosting = True  # whether clients live on this rank: on all but rank 0, which only serves unless it is alone
    library = "none"

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """For what the user's input may make fail on some ranks: then it fails on all, with the first rank's sentence.

        All ranks enter and leave together. Raises UserError, or the RunError of a disk that is full.
        """
        # new exceptions with the text alone: they travel by pickle, which a traceback or a class of a user's does not
        found: Exception | None = None
        try:
            yield
        except UserError as error:
            found = UserError(str(error))
        except RunError as error:
            found = RunError(str(error))
        except MemoryError as lack:
            found = UserError(f"this run does not fit in the memory of rank {self.rank}: {lack}".removesuffix(": "))
        found = self.agree(found)
        if found is not None:
            raise found

    def meet(self) -> None:
        """Wait for all ranks."""

    def agree(self, news: News | None) -> News | None:
        """The mistake, or other news, of the first rank that has one, on every rank; None where none has."""
        return news

    def share(self, value: Any) -> Any:
        """The value of rank 0, on every rank; for small settings, not for arrays."""
        return value

    def collect(self, value: Any) -> list[Any]:
        """The values of all ranks, at rank 0; for a few numbers, not for arrays."""
        return [value]

    def collect_rows(self, values: Array, counts: list[int]) -> Array:
        """The (c,) float64 arrays of all ranks one after the other, at rank 0; ``counts`` are their lengths."""
        return np.asarray(values, float)

    def nodes(self) -> list[int]:
        """The machine of each rank, by the first rank there; all ranks call it."""
        return [0]

    def survives(self) -> bool:
        """Whether the launcher lets the others live when a rank dies."""
        return False

    def unhurt(self) -> bool:
        """Whether all ranks live."""
        return True

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that a rank is dead."""
        return False

    def hurt(self) -> None:
        """Tell the others that this rank's run was cut off."""

    def shrink(self) -> World:
        """The ranks that live."""
        return self

    def abort(self, code: int = 1) -> None:
        """End every rank at once, where there are several."""
