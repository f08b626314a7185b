"""The selector of a run at work: it learns what it must know of clients, has candidates score themselves, and weighs
their uploads."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.calls import Calls
from mpifed.federation.participation.selection import Selector, nth_other
from mpifed.federation.setup import Setup

UNIFORM = 2  # the stream of a selection's uniform part


class Participants:
    """Who takes part in the rounds of a federation."""

    def __init__(self, selector: Selector, setup: Setup) -> None:
        self.selector, self.setup = selector, setup

    def learn(self, inspect: Callable[..., Any]) -> None:
        """Ask all clients, once, for the numbers that a selection needs; they are charged to no ledger."""
        if self.selector.learn is not None:
            self.selector = self.selector.learn(inspect(self.setup.algorithm.importance))

    def select(self, server: Calls, again: int, x: Array, given: tuple[Any, ...]) -> Array:
        """The clients of a selection by scores, rising; candidates get x and the numbers ``given``.

        Of the candidates the ``size`` with the largest scores, or all but the ``uniform`` that are drawn from the rest.
        """
        selector, round = self.selector, server.round
        selected = selector.select(round, again)
        assert selector.batch_size is not None
        # None names all: they are the candidates, of whom ``size`` stay
        selected = np.arange(server.m) if selected is None else selected
        moved = selector.score == "score_move"
        rest = given if moved else ()
        scores = server.call(getattr(self.setup.algorithm, selector.score), x, selector.batch_size, *rest, to=selected)
        server.schedule.scored(selected, None if moved else selector.batch_size, server.dtype.itemsize)
        # stable: of equal scores the lower client numbers, on every machine
        ahead = np.sort(selected[np.argsort(-scores, kind="stable")[: selector.size - selector.uniform]])
        if not selector.uniform:
            return ahead
        rng = stream(self.setup.seed, "selection", round, again, UNIFORM)
        # drawn among positions of the others, so that one stream serves any number of candidates
        places = rng.choice(server.m - len(ahead), selector.uniform, replace=False, shuffle=False)
        return np.sort(np.concatenate([ahead, nth_other(ahead, places)]))


def draws(server: Calls, participants: Participants) -> Callable[[int, Array, tuple[Any, ...]], Array | None]:
    """What makes a selection: its number in the round, x and ``given`` -> the clients, rising; None: all."""
    if participants.selector.batch_size is not None:
        return partial(participants.select, server)
    return lambda again, x, given: participants.selector.select(server.round, again)


def recentred(mean: Any, share: float, around: Any) -> Any:
    """A weighted mean about the point ``around``, where the weights have the mean 1 − ``share``; a tuple of them."""
    if isinstance(mean, tuple):
        return tuple([recentred(part, share, point) for part, point in zip(mean, around, strict=True)])
    return (mean + share * around).astype(np.asarray(mean).dtype)
