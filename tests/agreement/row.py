"""A row of the page of agreement: one method beside one program, and how far apart the two are at worst."""

import math
from typing import NamedTuple

import numpy as np

CLOSE = 1e-12  # relative; what is further apart needs a reason


class Row(NamedTuple):
    """``x`` and ``f`` are the worst relative differences over all rounds, nan where there is nothing to compare.

    Both are nan where the program is not installed here: the page keeps what was measured elsewhere. ``reason`` says
    what the program does otherwise than its paper, where it does: then the row has that in mpifed, by an option or a
    class, or without it in the program, and ``otherwise`` is how far apart the two are as they come. ``bound`` is what
    ``x`` and ``f`` must stay below.
    """

    method: str  # with its options in words, where it has several rows: "ef21, heavy ball"
    program: str  # repository
    commit: str  # its first digits; or a version
    compared: str  # rounds, clients, participation, start
    x: float
    f: float
    reason: str = ""
    bound: float = CLOSE
    otherwise: float = math.nan

    @property
    def shipped(self) -> bool:
        """Are method and program as they come: by name and settings, none by a derived class, none changed?"""
        return not ("by a derived class" in self.compared or "in the program" in self.compared)

    def without(self, reason: str, row: "Row") -> "Row":
        """Return this row with the reason why ``row`` is not 0, and how far that is."""
        return self._replace(reason=reason, otherwise=float(np.nanmax([row.x, row.f])))


def apart(ours: object, theirs: object) -> float:
    """max |ours − theirs| over max |theirs|, of all rounds together; nan where neither has a number."""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    assert (np.isfinite(a) == np.isfinite(b)).all(), "one of the two has numbers that are not finite"
    return float(np.abs(a - b).max() / np.abs(b).max())
