"""What a client method sees of its clients: the ``f`` of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.errors import UserError
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.graphs.weights import Weights
from mpifed.kernels.blocks import Block, weights
from mpifed.problems.base import Problem, Solve

Key = tuple[int | Array, int | Array]  # round and call, one for all clients or one each: of their random streams
NOBODY: Array = np.zeros(0, np.intp)
AHEAD = 1 << 18  # sample numbers of mini-batches that are drawn in advance, 2 MB: every call of a generator costs time


class Study(Protocol):
    """What clients know of a run: its problem, its seed, how many they are, the first model, the weights of a graph."""

    @property
    def problem(self) -> Problem: ...
    @property
    def seed(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def start(self) -> Array: ...
    @property
    def weights(self) -> Weights | None: ...


class Local:
    """f_i of c clients of one block. Arrays have the clients in front: X is (c, n), or (n,), a common point.

    ``problem``; ``n`` parameters, ``m`` clients in all, ``ids`` (c,) the numbers of these, ``d`` (c,) their samples.
    ``xp`` has the functions of the array-API standard for the arrays of these clients: numpy itself, or where the
    samples live on a device those for its tensors. ``ids`` are numpy's everywhere.
    """

    def __init__(self, block: Block, study: Study, ids: Array, key: Key) -> None:
        self.block, self.ids = block, ids
        self.problem, self.m = study.problem, study.m
        self.xp = block.xp
        self.n, self.d = len(study.start), block.d
        self._study, self._key = study, key

    @property
    def round(self) -> int | Array:
        """The round in which the clients were called; in asynchronous runs of each, counted by its uploads: (c,)."""
        return self._key[0]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Array) -> Local:
        """Some of these clients, by position."""
        rows = rows if isinstance(rows, np.ndarray) else to_numpy(rows)
        if len(rows) == len(self):
            return self
        round, call = (part[rows] if isinstance(part, np.ndarray) else part for part in self._key)
        return type(self)(self.block.take(rows), self._study, self.ids[rows], (round, call))

    def keyed(self, key: Key) -> Local:
        """The same clients with the random streams of other rounds and calls."""
        return type(self)(self.block, self._study, self.ids, key)

    def value(self, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.problem.value(self.block, X)

    def grad(self, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        return self.problem.grad(self.block, X)

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i)."""
        return self.problem.value_grad(self.block, X)

    def clipped_grad(self, X: Array, bound: float) -> Array:
        """∇f_i(x_i) with every sample's gradient clipped to 1-norm ``bound``: (c, n)."""
        return self.problem.clipped_grad(self.block, X, bound)

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        """f_i(x_i), ∇f_i(x_i) and, for a problem with classes, accuracy(X)."""
        value, grad, classes = self.problem.evaluate(self.block, X)
        return (value, grad) if classes is None else (value, grad, *self.accuracy(X, classes))

    def accuracy(self, X: Array, classes: Array | None = None) -> tuple[Array, Array, Array]:
        """The share of samples classified correctly at X, how many these are, and how many were tested: (c,) each.

        On each client's own test samples, on the training samples of clients without any; for whole blocks only.
        ``classes`` (c, D) are those predicted for the training samples, where they have been computed already.
        """
        xp = self.xp
        correct, tested = xp.zeros(len(self)), xp.zeros(len(self))
        for rows, block in self._tests():
            predicted = classes if block is self.block else None
            if predicted is None:
                predicted = self.problem.predict(block, X if X.ndim == 1 else X[rows])
            correct[rows] = xp.astype(xp.sum((predicted == block.b) & (block.w > 0), axis=1), correct.dtype)
            tested[rows] = xp.asarray(block.sizes, dtype=tested.dtype)
        return correct / tested, correct, tested

    def measure(self, X: Array) -> tuple[Array, ...]:
        """The numbers that the problem measures, on the same samples: (c,) each."""
        return self.tested(self.problem.measure, len(self.problem.measured()), X)

    def tested(self, compute: Callable[[Block, Array], tuple[Array, ...]], count: int, X: Array) -> tuple[Array, ...]:
        """What ``compute`` has of the same samples at X, so many numbers: (c,) each."""
        found = tuple(self.xp.zeros(len(self)) for _ in range(count))
        for rows, block in self._tests():
            for column, values in zip(found, compute(block, X if X.ndim == 1 else X[rows]), strict=True):
                column[rows] = self.xp.astype(self.xp.asarray(values), column.dtype)  # torch casts nothing by itself
        return found

    def _tests(self) -> list[tuple[Array, Block]]:
        """Blocks of test samples, of training samples for clients without any, and the clients of each, by position."""
        rest = self.block.note("without test samples", untested)
        parts = list(self.block.tests)
        if len(rest):
            parts.append((rest, self.block if len(rest) == len(self) else self.block.take(rest)))
        return parts

    def lipschitz(self) -> Array:
        """r_i, a Lipschitz constant of ∇f_i: (c,)."""
        return self.problem.lipschitz(self.block)

    def convexity(self) -> Array:
        """α_i, the strong convexity of f_i: (c,)."""
        return self.problem.convexity(self.block)

    def least_curvature(self) -> Array:
        """A lower bound of the eigenvalues of every ∇²f_i(x): (c,)."""
        return self.problem.least_curvature(self.block)

    def hessian(self, X: Array) -> Solve:
        """V -> ∇²f_i(x_i) v_i."""
        return self.problem.hessian(self.block, X)

    def hess(self, X: Array) -> Array:
        """∇²f_i(x_i), symmetric to the bit: (c, n, n)."""
        return self.problem.hess(self.block, X)

    def packed_hess(self, X: Array) -> Array:
        """The same as upper triangles, row by row, in an array of their own: (c, n(n+1)/2)."""
        return self.problem.packed_hess(self.block, X)

    def majorizer_inverse(self, scale: float, shift: float) -> Solve:
        """v -> (scale·H_i + shift·I)⁻¹ v, with H_i from the problem."""
        return self.problem.majorizer_inverse(self.block, scale, shift)

    def zeros(self, *shape: int) -> Array:
        """(c, n) zeros, or (c, *shape)."""
        return self.xp.zeros((len(self), *(shape or (self.n,))), dtype=self.block.b.dtype)

    def initial(self) -> Array:
        """The model a run starts from, a row a client: (c, n)."""
        return self.xp.tile(self.xp.asarray(self._study.start), (len(self), 1))

    @cached_property
    def samples(self) -> Array:
        """d_i as real numbers: (c, 1)."""
        return self.block.real(self.d[:, None])

    @cached_property
    def neighbours(self) -> Array:
        """How many neighbours each node of a graph has in this round, as real numbers: (c, 1)."""
        weights = self._study.weights
        if weights is None:
            raise UserError("clients have neighbours only with a table [graph]")
        degrees = weights.at(int(np.max(self._key[0]))).degrees[self.ids][:, None]
        return self.xp.asarray(degrees.astype(self._study.start.dtype))

    @cached_property
    def rng(self) -> list[np.random.Generator]:
        """One random stream a client, a new one in every round and call."""
        return streams(self._study.seed, "clients", self.ids, *self._key)

    def streams(self, seed: int, purpose: str) -> list[np.random.Generator]:
        """The same for another seed and purpose than those of the run."""
        return streams(seed, purpose, self.ids, *self._key)

    def steps(
        self, k0: int, epochs: int, size: int, most: Array | None = None
    ) -> Iterator[tuple[int, Local, Array | int]]:
        """Local iterations j = 0, 1 …, as (j, f on a mini-batch of ``size`` samples, weight).

        ``weight`` is 1, or (c, 1) with 0 for the clients that have no sample left in this mini-batch. With ``epochs``
        that many passes over the samples in random order, otherwise ``k0`` mini-batches, each drawn anew; j counts
        epochs or iterations. ``size`` 0 is the full batch; then an epoch is one step. Random numbers come from each
        client's own stream, those of several passes in advance. A client takes at most ``most`` (c,) of its steps and
        has weight 0 in the others (None: all of them).
        """
        if most is None:
            yield from self._steps(k0, epochs, size)
            return
        xp = self.xp
        left = xp.astype(most[:, None], self.block.b.dtype)
        for j, batch, has in self._steps(k0, epochs, size):
            if not xp.any(left > 0):
                return
            weight = has * xp.astype(left > 0, left.dtype)
            yield j, batch, 1 if xp.all(weight > 0) else weight
            left = left - weight

    def _steps(self, k0: int, epochs: int, size: int) -> Iterator[tuple[int, Local, Array | int]]:
        """The local iterations of clients that take all of them."""
        if size == 0:
            for j in range(epochs or k0):
                yield j, self, 1
            return
        width = min(size, self.block.b.shape[1])
        sizes = self.block.sizes
        passes = -(-int(sizes.max()) // width) if epochs else 1
        dtype = self._study.start.dtype
        put = self.xp.asarray
        left = sizes - width * np.arange(passes)[:, None]
        counts = np.minimum(np.maximum(left, 0), width)  # (passes, c)
        parts = [*map(put, weights(counts.ravel(), width, dtype).reshape(passes, len(self), width))]
        full = counts.all(axis=1).tolist()
        has = [1 if every else put((d > 0)[:, None].astype(dtype)) for d, every in zip(counts, full, strict=True)]
        for j, order in enumerate(map(put, self._orders(epochs or k0, passes * width))):
            for k, (w, own) in enumerate(zip(parts, has, strict=True)):
                block = self.block.batch(order[:, k * width : (k + 1) * width], w)
                yield j, type(self)(block, self._study, self.ids, self._key), own

    def _orders(self, count: int, length: int) -> Iterator[Array]:
        """``count`` random orders of each client's samples, one after the other: (c, ``length``), the rest 0."""
        sizes = self.block.sizes
        columns = np.arange(max(length, int(sizes.max())))
        rows = np.where(columns < sizes[:, None], columns, 0)[:, None]  # (c, 1, columns)
        ahead = max(1, AHEAD // rows.size)
        for first in range(0, count, ahead):
            orders = np.repeat(rows, min(ahead, count - first), axis=1)
            for rng, order, d in zip(self.rng, orders, sizes.tolist(), strict=True):
                own = order[:, :d]
                rng.permuted(own, axis=1, out=own)  # as permutation(d), drawn again for each row
            yield from orders.swapaxes(0, 1)[:, :, :length]


def untested(block: Block) -> Array:
    """The clients of a block without test samples of their own, by position."""
    return np.setdiff1d(np.arange(len(block)), np.concatenate([NOBODY, *(rows for rows, _ in block.tests)]))
