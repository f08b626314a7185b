"""Selections of clients by turns."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.participation.selection import Selector, SizedSelection


class Cyclic(SizedSelection, tag="cyclic"):
    """Clients by turns: the first ⌈share·m⌉ (or ``count``) in round 1, the next in round 2, after the last the first.

    A set begins with the last ``overlap`` clients of the one before, which then train twice in a turn. The second
    selection of a round is the first one of the next.
    """

    # Turns follow from the round.
    supports = Supports.EVERYTHING

    overlap: Annotated[int, Meta(ge=0, description="clients that a set shares with the one before")] = 0
    shuffled: Annotated[
        bool, Meta(description="in a random order, the same in all rounds, not in that of the data")
    ] = False

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        if self.overlap >= size:
            raise UserError(
                f"selection.overlap = {self.overlap} is wrong: it must be less than the {size} selected clients"
            )
        order = stream(seed, "selection", 0, 0).permutation(m) if self.shuffled else np.arange(m)

        def select(round: int, again: int) -> Array | None:
            if size == m:
                return None
            first = (round - 1 + again) * (size - self.overlap)
            return np.sort(order[np.arange(first, first + size) % m])

        return Selector(size, select)
