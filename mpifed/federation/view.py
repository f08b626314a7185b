"""Views: changes that features make to the f of client methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import ClientFactors, Problem

StreamKey = tuple[int | Array, int | Array]  # (round, call) of random streams, common or (c,)
Gradient = Callable[[Block, Array], Array]  # block, X (c, n) -> ∇f_i(x_i) (c, n)


class ViewedClients(Protocol):
    """The members of f that a view uses."""

    block: Block
    problem: Problem
    ids: Array
    key: StreamKey
    views: list[View]
    xp: Any  # functions for arrays: numpy, or those of a device

    def __len__(self) -> int: ...
    def with_key(self, key: StreamKey) -> Self: ...


F = TypeVar("F", bound=ViewedClients)
Steps = Iterator[tuple[int, F, Array | int]]  # local iterations: j, f on the samples of a step, weights


class View:
    """A change that a feature makes to the f of client methods; methods that it does not override change nothing.

    Several views apply in the order of their list. A view that draws numbers for some clients is made for them by
    ``of``. Its methods get f and must not store it: a reference cycle of f and its views would keep samples in memory
    until the garbage collector runs.
    """

    by_block: ClientFactors | None = None  # the factors as a function of a block, for caches of a block

    def of(self, f: ViewedClients, rows: Array | None = None) -> View:
        """Return the view for the clients of f: of a new call, or those at positions ``rows`` of the clients so far."""
        return self

    def factors(self, f: ViewedClients) -> Array | None:
        """Return factors of the f_i: (c,); None: no factors."""
        return None

    def neighbours(self, f: ViewedClients) -> Array | None:
        """Return the number of neighbours of each client: (c, 1); None: unknown."""
        return None

    def gradient(self, f: ViewedClients, before: Gradient) -> Gradient:
        """Return the gradient of local steps, from the one ``before`` this view."""
        return before

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        """Return the local iterations, from those before this view."""
        return steps


def multiply_factors(views: Sequence[View], f: ViewedClients) -> Array | None:
    """Return the product of the factors of some views: (c,); None: no factors."""
    parts = [part for part in (view.factors(f) for view in views) if part is not None]
    return math.prod(parts[1:], start=parts[0]) if parts else None


def multiply_block_factors(views: Sequence[View]) -> ClientFactors | None:
    """Return the product of the factors of some views as a function of a block; None: no factors."""
    parts = [view.by_block for view in views if view.by_block is not None]
    return (lambda block: math.prod(part(block) for part in parts)) if parts else None


def find_neighbour_counts(views: Sequence[View], f: ViewedClients) -> Array | None:
    """Return the number of neighbours of each client from the first view that knows it: (c, 1); None: unknown."""
    counts = (view.neighbours(f) for view in views)
    return next((count for count in counts if count is not None), None)
