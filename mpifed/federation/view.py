"""What features change of the clients that methods see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Factors, Problem

Key = tuple[int | Array, int | Array]  # round and call, one for all clients or one each: of their random streams
Gradient = Callable[[Block, Array], Array]  # block, X (c, n) -> ∇f_i(x_i) (c, n)


class Clients(Protocol):
    """What a view knows of clients."""

    block: Block
    problem: Problem
    ids: Array
    key: Key
    views: list[View]
    xp: Any  # functions for arrays: numpy, or those of a device

    def __len__(self) -> int: ...
    def keyed(self, key: Key) -> Self: ...


F = TypeVar("F", bound=Clients)
Steps = Iterator[tuple[int, F, Array | int]]  # local iterations: j, clients with the samples of a step, their weights


class View:
    """What a feature changes of the clients that methods see. What it does not override is left as it is.

    Several apply in the order of their list. A view that draws numbers for some clients is made for these by ``of``. It
    is given them, f, by each of its methods and must not keep them: in a circle of an f and its views samples would lie
    in memory until Python looks for circles.
    """

    by_block: Factors | None = None  # the factors as a function of a block alone, for what is made once for a block

    def of(self, f: Clients, rows: Array | None = None) -> View:
        """The same for clients f: of a new call, or those at the positions ``rows`` of the clients so far."""
        return self

    def factors(self, f: Clients) -> Array | None:
        """What each f_i is multiplied with: (c,), None: nothing."""
        return None

    def neighbours(self, f: Clients) -> Array | None:
        """How many neighbours each client has: (c, 1), None: not known."""
        return None

    def gradient(self, f: Clients, before: Gradient) -> Gradient:
        """The gradient in local steps, from the one ``before``."""
        return before

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        """The local iterations, from those before."""
        return steps


def factors_of(views: Sequence[View], f: Clients) -> Array | None:
    """What some views together multiply each f_i with: (c,), None: nothing."""
    parts = [part for part in (view.factors(f) for view in views) if part is not None]
    return math.prod(parts[1:], start=parts[0]) if parts else None


def by_block_of(views: Sequence[View]) -> Factors | None:
    """The same as a function of a block."""
    parts = [view.by_block for view in views if view.by_block is not None]
    return (lambda block: math.prod(part(block) for part in parts)) if parts else None


def neighbours_of(views: Sequence[View], f: Clients) -> Array | None:
    """How many neighbours each client has, as the first view knows that does: (c, 1)."""
    found = (view.neighbours(f) for view in views)
    return next((part for part in found if part is not None), None)
