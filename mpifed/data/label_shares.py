"""Samples by their labels: which class each is of, and shares of classes as whole numbers."""

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array


def apportion(expected: Array, members: Array) -> Array:
    """Round ``expected`` (classes, m) to whole numbers with row sums ``members`` (classes,).

    Rounding errors of a client are carried over to the next class. If each class were rounded separately, equal shares
    of classes smaller than m would leave the same clients empty in all of them.
    """
    counts = np.floor(expected).astype(np.int64)
    owed = np.zeros(expected.shape[1])
    for row, want, total in zip(counts, expected, members, strict=True):
        owed += want - row
        up = np.argsort(-owed, kind="stable")[: total - row.sum()]
        row[up] += 1
        owed[up] -= 1
    return counts


def classes_of(y: Array, name: str) -> tuple[Array, Array]:
    """The class 0 … C-1 of each sample (d,) and the size of each class (C,); UserError if labels are not classes."""
    if not np.all(y == np.floor(y)):
        raise UserError(f'data.partition = "{name}" needs classes: the labels of this data are not whole numbers')
    _, label, members = np.unique(y, return_inverse=True, return_counts=True)
    return label.ravel(), members
