"""Blocks: the samples of clients of similar size in one array, so that one numpy call computes for many clients.

Rows are padded to a multiple of 4, and all clients of a block have the same padded size. So the result of a client is
the same, to the last bit, whichever clients share its block. A block is small enough to stay in the cache of a core,
because an algorithm takes all its local steps on one block before it turns to the next.

Many clients of few samples may be stored without padding, and their block is padded whenever it is computed with. Five
samples are padded to eight rows, 1.6 times the memory. Padding anew makes a gradient of softmax 3 % slower and one of
logistic loss up to 50 %, so only large sets of samples are stored without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.data.sample_columns import WeightsAndOffsets
from mpifed.kernels.products import DENSE, DenseProducts, row_positions

LARGE = 1 << 28  # bytes of padded samples above which memory counts more than time, and padding is left out …
SHARE = 8  # … if it is more than one row in so many


class Block:
    """The samples of c clients, each padded to D rows, and the ``products`` that multiply with them.

    ``A`` (c, D, n): features, in the form of ``products``. ``b`` (c, D): labels. ``sizes`` (c,): numbers of samples
    without the padding, always an array of numpy. ``d`` (c,): the divisors of f_i, these numbers or the sums of
    the weights v_j of samples. ``w`` (c, D): 1/d_i, or v_j/d_i, on the rows of client i, and 0 on the
    padding. ``offset`` (c, D): numbers added to scores; None if samples have neither weights nor offsets.
    ``frequencies``: whether v_j is how many samples a row stands for. ``tests``: blocks with the test samples of these
    clients, each with the positions of its clients in this block. ``xp`` has the functions of the array-API standard
    for these arrays.

        >>> class Absolute(mpifed.extend.Problem):
        ...     def value_grad(self, block: mpifed.extend.Block, X):
        ...         r = block.matvec(X) - block.b
        ...         return (block.w * np.abs(r)).sum(axis=1), block.vecmat(block.w * np.sign(r))
        >>> mpifed.run(problem=Absolute(), algorithm="fedavg", rounds=2).cr
        2
    """

    offset: Array | None = None
    frequencies: bool = False
    unpadded: Unpadded | None = None  # the samples, if they are stored without padding
    source: tuple[Block, Any] | None = None  # of a part on a device: the block with its samples, positions there
    drawn: tuple[Block, Array] | None = None  # of a mini-batch in memory: the block it is of, rows (c, B) there
    training: tuple[Block, Array] | None = None  # of test samples: the block of their clients, positions there
    group_position: tuple[Any, int] | None = None  # of a full block: its SameSizeBlocks, and its number there

    def __init__(
        self, A: Any, b: Array, d: Array, n: int, w: Array | None = None, products: DenseProducts = DENSE
    ) -> None:
        self._A = A
        self.b = b
        self.d = self.sizes = d
        self.n = n
        self.w = padding_weights(d, b.shape[1], b.dtype) if w is None else w
        self.products = products
        self.xp = products.xp
        self.held: dict[str, list[tuple[Array, Block]]] = {}  # by role: positions of clients, their samples
        self.cache: dict[str, Array] = {}  # of once(), of a full block, for the whole run
        self.notes: dict[str, Any] = {}  # of note(), of this block alone
        self.parts: list[tuple[Any, Array]] = []  # of a block made of others: these, positions there

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def A(self) -> Any:
        """The features (c, D, n), in the form of ``products``."""
        if self.unpadded is not None:
            return self.unpadded.padded()
        if self._A is None and self.drawn is not None:
            # Copied at its first use: gradients on the scores of samples need none of it.
            self._A = self.products.take_rows(*self.drawn)
        if self._A is None:
            # A part on a device copies A at its first use: mini-batches take rows from the source, and a copy of all
            # samples of the selected clients would cost more than the step itself.
            assert self.source is not None
            block, rows = self.source
            self._A = self.products.take_from_source(block, rows)
        return self._A

    @A.setter
    def A(self, A: Any) -> None:
        self._A = A

    def take(self, rows: Array) -> Block:
        """Return the block of the clients at positions ``rows``, with the values computed once for them."""
        block = self.part(rows)
        block.parts = [(self, rows)]
        return block

    def part(self, rows: slice | Array) -> Block:
        """Return a block with the samples of the clients at positions ``rows``, without the values computed once."""
        at, A, source = self.products.part(self, rows) if self.unpadded is None else (rows, None, None)
        block = Block(A, self.b[at], self.d[at], self.n, self.w[at], self.products)
        block.unpadded = self.unpadded and self.unpadded.part(rows)
        block.source = source
        if self.d is not self.sizes:
            block.sizes = self.sizes[rows]
        if self.offset is not None:
            block.offset = self.offset[rows]
            block.frequencies = self.frequencies
        return block

    @staticmethod
    def gather(parts: list[tuple[Block, Array]]) -> Block:
        """Join clients of several blocks (block, positions) of the same padded size to one block."""

        def concatenate(name: str) -> Array:
            return np.concatenate([getattr(block, name)[rows] for block, rows in parts])

        first = parts[0][0]
        products = first.products
        joined = Block(products.gather(parts), concatenate("b"), concatenate("d"), first.n, concatenate("w"), products)
        joined.parts = list(parts)
        if first.offset is not None:
            joined.sizes = concatenate("sizes")
            joined.offset = concatenate("offset")
            joined.frequencies = first.frequencies
        return joined

    def batch(self, picks: Array, w: Array) -> Block:
        """Return a mini-batch: rows ``picks`` (c, B) of each client, with weights ``w`` (c, B).

        ``d`` stays that of all samples, because regularisers need it.
        """
        A, b, w, rows = self.products.batch(self, picks, w)
        block = Block(A, b, self.d, self.n, w, self.products)
        block.drawn = None if rows is None else (self, rows)
        block.sizes = self.sizes
        if self.offset is not None:
            # Rows are drawn uniformly, so each counts d_i v_j/Σv times: then their mean is unbiased.
            rows = row_positions(self, picks)
            block.w = w * (self.w.take(rows) * self.sizes[:, None]).astype(w.dtype)
            block.offset = self.offset.take(rows)
        return block

    def weigh(self, columns: WeightsAndOffsets, ids: Array, role: str) -> None:
        """Set the weights v_j > 0 and offsets of the samples of the clients ``ids`` in a role."""
        v, offset = columns.padded(ids, self.b.shape[1], role)
        self.d = v.sum(axis=1)
        self.w[:] = v / self.d[:, None]
        self.offset = offset.astype(self.b.dtype)
        self.frequencies = "frequency" in columns.names

    def scale_by_roots(self) -> Block:
        """Return a copy with rows √v_j a_j, whose Gram matrices are Σ v_j a_j a_jᵀ; itself where v_j = 1."""
        if self.offset is None:
            return self
        block = Block(self.products.scale_rows(self, self.roots), self.b, self.d, self.n, self.w, self.products)
        block.sizes = self.sizes
        return block

    @property
    def roots(self) -> Array:
        """The roots √v_j of the weights of samples: (c, D)."""
        return self.note("roots", lambda block: np.sqrt(block.w * block.d[:, None]).astype(block.b.dtype))

    def in_cpu_memory(self) -> Block:
        """Return a block with these samples in memory; the block itself if they are there."""
        memory = self.products.memory
        if memory is None:
            return self
        block = Block(
            self.products.features_in_memory(self), to_numpy(self.b), self.sizes, self.n, to_numpy(self.w), memory
        )
        if self.training is not None:
            other, rows = self.training
            block.training = other.in_cpu_memory(), rows
        return block

    def once(self, key: str, compute: Callable[[Block], Array]) -> Array:
        """Return ``compute(block)``, an array (c, …) that is computed once for each full block and cached.

        Numpy computes it, for samples on a device from a copy in memory, so that it has the same bits.
        """
        if self.parts:
            values = [part.values(key, compute, rows) for part, rows in self.parts]
            return values[0] if len(values) == 1 else np.concatenate(values)
        if key in self.cache:
            return self.cache[key]
        if self.group_position is None:
            self.cache[key] = self.xp.asarray(compute(self.in_cpu_memory()))
        else:
            # A view of the group's array, which other blocks of these clients read too.
            group, k = self.group_position
            self.cache[key] = group.values_of(key, compute, k)
        return self.cache[key]

    def client_values(self, key: str, compute: Callable[[Block], Array], rows: Array | None = None) -> Array:
        """Return ``compute(block)``, (c, …), computed once for each client that is asked for, and cached for the run.

        Of the clients at positions ``rows`` (None: all); ``compute`` may get any clients together.
        """
        if self.group_position is not None and not self.parts:
            group, k = self.group_position
            return group.client_values(key, compute, group.starts[k] + (np.arange(len(self)) if rows is None else rows))
        if self.parts:
            values = [part.client_values(key, compute, at) for part, at in self.parts]
            found = values[0] if len(values) == 1 else np.concatenate(values)
        else:
            found = self.once(key, compute)
        return found if rows is None else found[rows]

    def values(self, key: str, compute: Callable[[Block], Array], rows: Array) -> Array:
        """Return the values of ``once`` for the clients at positions ``rows``."""
        return self.once(key, compute)[rows]

    def note(self, key: str, compute: Callable[[Block], Any]) -> Any:
        """Return ``compute(block)``, any value, cached; ``gather`` makes blocks without it, so it should be cheap."""
        if key not in self.notes:
            self.notes[key] = compute(self)
        return self.notes[key]

    def real(self, numbers: Array) -> Array:
        """Copy an array of these clients, in the dtype of their samples."""
        return self.xp.astype(numbers, self.b.dtype)

    def scores(self, X: Array) -> Array:
        """Compute the scores A_i x_i plus the offsets of samples: (c, D)."""
        Z = self.products.matvec(self, X)
        return Z if self.offset is None else Z + self.offset

    def matvec(self, X: Array) -> Array:
        """Compute A_i x_i (c, D), with X (n,) for all clients or (c, n), one row per client."""
        return self.products.matvec(self, X)

    def vecmat(self, R: Array) -> Array:
        """Compute A_iᵀ r_i (c, n), with R (c, D)."""
        return self.products.vecmat(self, R)

    def one_pass(
        self, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        """Compute scores z_i = A_i x_i + offset_i (c, D) and A_iᵀ residual(z_i) + ridge_i x_i (c, n), ridge (c, 1).

        ``residual`` returns the slopes of a linear model, times w; compiled kernels know logistic and linear ones.
        """
        return self.products.one_pass(self, X, residual, logistic, ridge)

    def multiply(self, K: Array, V: Array) -> Array:
        """Compute K_i v_i (c, n), with K (c, n, n) and V (n,) or (c, n)."""
        return self.products.multiply(self, K, V)

    def gram_product(self, W: Array, V: Array) -> Array:
        """Compute A_iᵀ diag(w_i) A_i v_i (c, n), with W (c, D)."""
        return self.products.gram_product(self, W, V)

    def gram(self, W: Array) -> Array:
        """Compute A_iᵀ diag(w_i) A_i (c, n, n), symmetric to the bit, with W (c, D)."""
        return self.products.gram(self, W)

    def packed_gram(self, W: Array) -> Array:
        """Compute the upper triangles of ``gram``, row by row: (c, n(n+1)/2)."""
        return self.products.packed_gram(self, W)

    def matmat(self, W: Array) -> Array:
        """Compute A_i W_iᵀ (c, D, k), with W (k, n) or (c, k, n)."""
        return self.products.matmat(self, W)

    def tmatmat(self, R: Array) -> Array:
        """Compute R_iᵀ A_i (c, k, n), with R (c, D, k)."""
        return self.products.tmatmat(self, R)

    def put_tmatmat(self, R: Array, out: Array) -> None:
        """Write ``tmatmat(R)`` into ``out``."""
        self.products.put_tmatmat(self, R, out)

    def dense(self, i: int) -> Array:
        """Return the rows of the i-th client without the padding, as a dense array: (d_i, n)."""
        return self.products.dense(self, i)

    def norms1(self) -> Array:
        """Compute ‖a‖₁ of every sample: (c, D)."""
        return self.products.norms1(self)


def padding_weights(d: Array, D: int, dtype: Any) -> Array:
    """Return weights (c, D): 1/d_i in the first d_i columns, 0 in the others."""
    inverse = (1 / np.maximum(d, 1)).astype(dtype)
    return np.where(np.arange(D) < d[:, None], inverse[:, None], inverse.dtype.type(0))


def stores_unpadded(rows: int, shape: tuple[int, int, int], itemsize: int) -> bool:
    """Return whether clients of at most ``rows`` samples, padded to ``shape`` (c, D, n), are stored without padding."""
    return math.prod(shape) * itemsize > LARGE and SHARE * (shape[1] - rows) > shape[1]


class Unpadded:
    """Samples A (c, d, n) without the D − d rows of zeros of their padding, and ``rows``, the clients of one block.

    ``last`` caches the padded samples of one block, that asked for last, for all blocks of the same A.
    """

    def __init__(self, A: Array, D: int, rows: slice | Array, last: dict[str, Any]) -> None:
        self.A = A
        self.D = D
        self.rows = rows
        self.last = last

    def part(self, rows: slice | Array) -> Unpadded:
        """Return the samples of the clients at positions ``rows``."""
        selected = self.rows
        if not isinstance(selected, slice):
            selected = selected[rows]
        elif isinstance(rows, slice):
            span = range(len(self.A))[selected][rows]
            selected = slice(span.start, span.stop)
        else:
            selected = np.arange(len(self.A))[selected][rows]
        return Unpadded(self.A, self.D, selected, self.last)

    def padded(self) -> Array:
        """Return the samples with padding: (c, D, n)."""
        # a block is asked several times before the next one takes its place
        if self.last.get("rows") is not self.rows:
            samples = self.A[self.rows]
            d = samples.shape[1]
            A = np.empty((len(samples), self.D, samples.shape[2]), samples.dtype)
            A[:, :d] = samples
            A[:, d:] = 0
            self.last.update(rows=self.rows, A=A)
        padded: Array = self.last["A"]
        return padded
