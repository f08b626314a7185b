"""A pool of samples and the list of who owns which: the data set behind every file and catalogue entry."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Dataset


class Part(NamedTuple):
    """The training or the test samples of all clients."""

    X: Any  # (d, n): an array, CSR, or a matrix that stays in its file; takes [lo:hi] and [row numbers]
    y: Array  # (d,)
    order: Array | None  # client i owns the rows order[starts[i]:starts[i + 1]]; None: the rows as they lie
    starts: Array  # (m + 1,)


class Pool(Dataset):
    """Samples X (d, n), y (d,) of which client i owns the next ``sizes[i]`` rows of ``order``.

    Rows are converted to ``dtype`` when they are read, CSR to dense ones unless ``sparse`` is True. ``test`` holds
    (X, y, order, sizes) of the test samples. Errors name ``source``.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        order: Array | None,
        sizes: Array,
        dtype: str = "float64",
        source: str = "X",
        sparse: bool | None = None,
        test: tuple[Any, Array, Array | None, Array] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.source = source
        self.sparse = (sp.issparse(X) or getattr(X, "sparse", False)) if sparse is None else sparse
        self.m, self.n = len(sizes), int(X.shape[1])
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.train = Part(X, y, order, starts_of(self.sizes))
        self.test: Part | None = None
        if test is not None:
            self.sizes_test = np.asarray(test[3], dtype=np.int64)
            self.test = Part(*test[:3], starts_of(self.sizes_test))
        self.classes = count_classes(y if test is None else np.concatenate([y, test[1]]))

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self.read(self.train, lo, hi, "X", "y")

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        if self.test is None:
            raise UserError(f"{self.source} has no test samples: it needs X_test, y_test and sizes_test")
        names = ("X", "y") if self.test.X is self.train.X else ("X_test", "y_test")  # as the file calls them
        return self.read(self.test, lo, hi, *names)

    def read(self, part: Part, lo: int, hi: int, X_name: str, y_name: str) -> tuple[Matrix, Array]:
        """The samples of the clients lo <= i < hi, as ``dtype`` and finite."""
        a, b = int(part.starts[lo]), int(part.starts[hi])
        index: Any = slice(a, b) if part.order is None else part.order[a:b]
        numbers = range(a, b) if part.order is None else index
        with np.errstate(over="ignore"):
            X = part.X[index].astype(self.dtype, copy=False)
            y = part.y[index].astype(self.dtype, copy=False)
        if sp.issparse(X) and not self.sparse:
            X = X.toarray()
        check_finite(X, numbers, f"{X_name} of {self.source}")
        check_finite(y, numbers, f"{y_name} of {self.source}")
        return X, y


def starts_of(sizes: Array) -> Array:
    """Where each client's rows begin, and where the last one's end: (m + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)])


def count_classes(y: Array) -> int:
    """1 + the largest label where labels are whole numbers >= 0, else 0."""
    whole = len(y) > 0 and bool(np.all((y >= 0) & (y == np.floor(y)) & (y < np.inf)))
    return 1 + int(y.max()) if whole else 0


def check_finite(values: Matrix, numbers: Any, name: str) -> None:
    """UserError with the row, counted from 0 in the file, of the first NaN or infinity in ``values``."""
    if sp.issparse(values):
        bad = np.flatnonzero(~np.isfinite(values.data))
        row = int(np.searchsorted(values.indptr, bad[0], side="right")) - 1 if bad.size else -1
    else:
        finite = np.isfinite(values)
        row = -1 if finite.all() else int(np.argmin(finite.reshape(len(values), -1).all(axis=1)))
    if row >= 0:
        raise UserError(
            f"row {numbers[row]} of {name} is not finite: it holds a NaN, an infinity or a number "
            f"too large for {values.dtype.name}, counting rows from 0"
        )


def unit_columns(X: Matrix) -> Matrix:
    """X with each column divided by its Euclidean norm, zero columns left 0; no centring (errata, qot and adult)."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.einsum("ij,ij->j", X, X))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return (X @ sp.diags_array(scale)).tocsr() if sp.issparse(X) else X * scale
