"""Local transforms: changes that plug-ins make to the f of client methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import ClientFactors, Problem

StreamKey = tuple[int | Array, int | Array]  # (round, call) of random streams, common or (c,)
Gradient = Callable[[Block, Array], Array]  # block, X (c, n) -> ∇f_i(x_i) (c, n)


class LocalClients(Protocol):
    """The members of f that a transform uses."""

    block: Block
    problem: Problem
    ids: Array
    key: StreamKey
    transforms: list[LocalTransform]
    xp: Any  # functions for arrays: numpy, or those of a device

    def __len__(self) -> int: ...
    def with_key(self, key: StreamKey) -> Self: ...


F = TypeVar("F", bound=LocalClients)
Steps = Iterator[tuple[int, F, Array | int]]  # local iterations: j, f on the samples of a step, weights


class LocalTransform:
    """A change that a plug-in makes to the f of client methods; methods that it does not override change nothing.

    Several transforms apply in the order of their list. One that draws numbers for some clients is made for them by
    ``of``. Its methods get f and must not store it: a reference cycle of f and its transforms would keep samples in
    memory until the garbage collector runs.

        >>> class Doubled(mpifed.extend.LocalTransform):
        ...     def gradient(self, f, before):
        ...         return lambda block, X: 2 * before(block, X)
    """

    evaluation_only = False  # whether only evaluations see the change, and no client method does
    by_block: ClientFactors | None = None  # the factors as a function of a block, for caches of a block

    def of(self, f: LocalClients, rows: Array | None = None) -> LocalTransform:
        """Return the transform for the clients of f: those of a new call, or of those so far the ones at ``rows``."""
        return self

    def factors(self, f: LocalClients) -> Array | None:
        """Return factors of the f_i: (c,); None: no factors."""
        return None

    def neighbours(self, f: LocalClients) -> Array | None:
        """Return the number of neighbours of each client: (c, 1); None: unknown."""
        return None

    def gradient(self, f: LocalClients, before: Gradient) -> Gradient:
        """Return the gradient of local steps, from the one ``before`` this transform."""
        return before

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        """Return the local iterations, from those before this transform."""
        return steps


def changes_steps(transform: LocalTransform) -> bool:
    """Return whether a transform changes gradients of local steps, or which steps there are."""
    cls = type(transform)
    return cls.gradient is not LocalTransform.gradient or cls.steps is not LocalTransform.steps


def multiply_factors(transforms: Sequence[LocalTransform], f: LocalClients) -> Array | None:
    """Return the product of the factors of some transforms: (c,); None: no factors."""
    parts = [part for part in (transform.factors(f) for transform in transforms) if part is not None]
    return math.prod(parts[1:], start=parts[0]) if parts else None


def multiply_block_factors(transforms: Sequence[LocalTransform]) -> ClientFactors | None:
    """Return the product of the factors of some transforms as a function of a block; None: no factors."""
    parts = [transform.by_block for transform in transforms if transform.by_block is not None]
    return (lambda block: math.prod(part(block) for part in parts)) if parts else None


def find_neighbour_counts(transforms: Sequence[LocalTransform], f: LocalClients) -> Array | None:
    """Return the number of neighbours of each client from the first transform that knows it: (c, 1); None: unknown."""
    counts = (transform.neighbours(f) for transform in transforms)
    return next((count for count in counts if count is not None), None)
