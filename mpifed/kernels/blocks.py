"""Blocks: the samples of clients of similar size in one array, so that one numpy call computes for many clients.

Rows are padded to a multiple of 4, and all clients of a block have the same padded size. Then the result of a client is
the same, to the last bit, whichever clients share its block. A block is so small that it stays in the cache of a core,
because an algorithm takes all its local steps on one block before it goes on to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.data.sample_columns import SampleColumns
from mpifed.kernels.products import DENSE, Dense, positions
from mpifed.kernels.unpadded import Unpadded


class Block:
    """The samples of c clients, each padded to D rows, and the ``products`` that multiply with them.

    ``A`` (c, D, n): features, in the form of ``products``. ``b`` (c, D): labels. ``sizes`` (c,): numbers of samples
    without the padding, always an array of numpy. ``d`` (c,): what f_i divides by, these numbers, or
    the sums of the weights v_j of samples. ``w`` (c, D): 1/d_i, or v_j/d_i, on the rows of client i, and 0 on the
    padding. ``offset`` (c, D): what is added to scores; None where samples have neither weights nor offsets.
    ``frequencies``: whether v_j is how many samples a row stands for. ``tests``: blocks with the test samples of these
    clients, each with the positions of its clients in this block. ``xp`` has the functions of the array-API standard
    for these arrays.

        >>> class Absolute(mpifed.Problem):
        ...     def value_grad(self, block: mpifed.Block, X):
        ...         r = block.matvec(X) - block.b
        ...         return (block.w * np.abs(r)).sum(axis=1), block.vecmat(block.w * np.sign(r))
        >>> mpifed.run(problem=Absolute(), algorithm="fedavg", rounds=2).cr
        2
    """

    offset: Array | None = None
    frequencies: bool = False
    unpadded: Unpadded | None = None  # samples that are stored so
    source: tuple[Block, Any] | None = None  # of a part on a device: the block with its samples, and positions there
    training: tuple[Block, Array] | None = None  # of test samples: the block and positions of their clients
    place: tuple[Any, int] | None = None  # of a whole block: its SameSizeBlocks, and its number there

    def __init__(self, A: Any, b: Array, d: Array, n: int, w: Array | None = None, products: Dense = DENSE) -> None:
        self._A = A
        self.b = b
        self.d = self.sizes = d
        self.n = n
        self.w = weights(d, b.shape[1], b.dtype) if w is None else w
        self.products = products
        self.xp = products.xp
        self.tests: list[tuple[Array, Block]] = []
        self.cache: dict[str, Array] = {}  # of once(): of a whole block, as long as the run
        self.notes: dict[str, Any] = {}  # of note(): of this block alone
        self.parts: list[tuple[Any, Array]] = []  # of a block made of others: blocks or groups, and positions there

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def A(self) -> Any:
        if self.unpadded is not None:
            return self.unpadded.padded()
        if self._A is None:
            # A part on a device makes A when it is first asked for: mini-batches take their rows from the source, and
            # a copy of all samples of the selected clients would cost more than the step itself.
            assert self.source is not None
            block, rows = self.source
            self._A = self.products.later(block, rows)
        return self._A

    @A.setter
    def A(self, A: Any) -> None:
        self._A = A

    def take(self, rows: Array) -> Block:
        """The block of the clients at positions ``rows``."""
        made = self.part(rows)
        made.parts = [(self, rows)]
        return made

    def part(self, rows: slice | Array) -> Block:
        """The samples of the clients at positions ``rows``, without what has been computed of them."""
        at, A, source = self.products.part(self, rows) if self.unpadded is None else (rows, None, None)
        made = Block(A, self.b[at], self.d[at], self.n, self.w[at], self.products)
        made.unpadded = self.unpadded and self.unpadded.part(rows)
        made.source = source
        if self.d is not self.sizes:
            made.sizes = self.sizes[rows]
        if self.offset is not None:
            made.offset = self.offset[rows]
            made.frequencies = self.frequencies
        return made

    @staticmethod
    def gather(parts: list[tuple[Block, Array]]) -> Block:
        """A block of clients from several blocks (block, positions) of the same padded size."""

        def all_of(name: str) -> Array:
            return np.concatenate([getattr(block, name)[rows] for block, rows in parts])

        first = parts[0][0]
        products = first.products
        made = Block(products.gather(parts), all_of("b"), all_of("d"), first.n, all_of("w"), products)
        made.parts = list(parts)
        if first.offset is not None:
            made.sizes = all_of("sizes")
            made.offset = all_of("offset")
            made.frequencies = first.frequencies
        return made

    def batch(self, picks: Array, w: Array) -> Block:
        """A mini-batch: rows ``picks`` (c, B) of each client, with weights ``w`` (c, B).

        ``d`` stays that of all samples, which regularisers need.
        """
        A, b, w = self.products.batch(self, picks, w)
        made = Block(A, b, self.d, self.n, w, self.products)
        made.sizes = self.sizes
        if self.offset is not None:
            # Rows are drawn evenly, so each counts d_i v_j/Σv times: the mean over them is right on average.
            rows = positions(self, picks)
            made.w = w * (self.w.take(rows) * self.sizes[:, None]).astype(w.dtype)
            made.offset = self.offset.take(rows)
        return made

    def weigh(self, columns: SampleColumns, ids: Array, test: bool) -> None:
        """Give the samples of the clients ``ids``, training or test samples, their weights v_j > 0 and offsets."""
        v, offset = columns.padded(ids, self.b.shape[1], test)
        self.d = v.sum(axis=1)
        self.w[:] = v / self.d[:, None]
        self.offset = offset.astype(self.b.dtype)
        self.frequencies = "frequency" in columns.names

    def rooted(self) -> Block:
        """A copy with rows √v_j a_j, whose Gram matrices are Σ v_j a_j a_jᵀ; the block itself for plain samples."""
        if self.offset is None:
            return self
        made = Block(self.products.scaled(self, self.roots), self.b, self.d, self.n, self.w, self.products)
        made.sizes = self.sizes
        return made

    @property
    def roots(self) -> Array:
        """√v_j: (c, D)."""
        return self.note("roots", lambda block: np.sqrt(block.w * block.d[:, None]).astype(block.b.dtype))

    def copied(self) -> Block:
        """These samples in memory, where they are."""
        memory = self.products.memory
        if memory is None:
            return self
        made = Block(self.products.in_memory(self), to_numpy(self.b), self.sizes, self.n, to_numpy(self.w), memory)
        if self.training is not None:
            other, rows = self.training
            made.training = other.copied(), rows
        return made

    def once(self, key: str, compute: Callable[[Block], Array]) -> Array:
        """``compute(block)``, an array (c, …), computed once for each whole block and kept.

        Numpy computes it, from a copy of samples that are on a device: so it has the bits that it has in memory.
        """
        if self.parts:
            found = [part.values(key, compute, rows) for part, rows in self.parts]
            return found[0] if len(found) == 1 else np.concatenate(found)
        if key in self.cache:
            return self.cache[key]
        if self.place is None:
            self.cache[key] = self.xp.asarray(compute(self.copied()))
        else:
            # A view of the group's array, which blocks of clients that are selected read too, and later cuts.
            group, k = self.place
            self.cache[key] = group.values_of(key, compute, k)
        return self.cache[key]

    def values(self, key: str, compute: Callable[[Block], Array], rows: Array) -> Array:
        """The same for the clients at positions ``rows`` alone."""
        return self.once(key, compute)[rows]

    def note(self, key: str, compute: Callable[[Block], Any]) -> Any:
        """``compute(block)``, any value; computed again for a block that ``gather`` makes, so it should be cheap."""
        if key not in self.notes:
            self.notes[key] = compute(self)
        return self.notes[key]

    def real(self, numbers: Array) -> Array:
        """A copy of an array of these clients in the type of their samples."""
        return self.xp.astype(numbers, self.b.dtype)

    def scores(self, X: Array) -> Array:
        """A_i x_i and the offsets of samples: (c, D)."""
        Z = self.products.matvec(self, X)
        return Z if self.offset is None else Z + self.offset

    def matvec(self, X: Array) -> Array:
        """A_i x_i: (c, D), with X (n,) for all clients or (c, n), one row per client."""
        return self.products.matvec(self, X)

    def vecmat(self, R: Array) -> Array:
        """A_iᵀ r_i: (c, n), with R (c, D)."""
        return self.products.vecmat(self, R)

    def one_pass(
        self, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        """Scores z_i = A_i x_i + offset_i (c, D) and A_iᵀ residual(z_i) + ridge_i x_i (c, n), with ridge (c, 1).

        ``residual`` gives the slopes of a linear model, times w; those of compiled kernels are logistic or linear.
        """
        return self.products.one_pass(self, X, residual, logistic, ridge)

    def multiply(self, K: Array, V: Array) -> Array:
        """K_i v_i: (c, n), with K (c, n, n) and V (n,) or (c, n)."""
        return self.products.multiply(self, K, V)

    def bent(self, W: Array, V: Array) -> Array:
        """A_iᵀ diag(w_i) A_i v_i: (c, n), with W (c, D)."""
        return self.products.bent(self, W, V)

    def gram(self, W: Array) -> Array:
        """A_iᵀ diag(w_i) A_i: (c, n, n), symmetric to the bit, with W (c, D)."""
        return self.products.gram(self, W)

    def packed_gram(self, W: Array) -> Array:
        """The upper triangles of ``gram``, row by row: (c, n(n+1)/2)."""
        return self.products.packed_gram(self, W)

    def matmat(self, W: Array) -> Array:
        """A_i W_iᵀ: (c, D, k), with W (k, n) or (c, k, n)."""
        return self.products.matmat(self, W)

    def tmatmat(self, R: Array) -> Array:
        """R_iᵀ A_i: (c, k, n), with R (c, D, k)."""
        return self.products.tmatmat(self, R)

    def put_tmatmat(self, R: Array, out: Array) -> None:
        """The same, written into ``out``."""
        self.products.put_tmatmat(self, R, out)

    def dense(self, i: int) -> Array:
        """The rows of the i-th client without the padding: (d_i, n)."""
        return self.products.dense(self, i)

    def norms1(self) -> Array:
        """‖a‖₁ of every sample: (c, D)."""
        return self.products.norms1(self)


def weights(d: Array, D: int, dtype: Any) -> Array:
    """Weights (c, D): 1/d_i in the first d_i columns, 0 in the others."""
    shares = (1 / np.maximum(d, 1)).astype(dtype)
    return np.where(np.arange(D) < d[:, None], shares[:, None], shares.dtype.type(0))
