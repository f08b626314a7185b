"""A column of ones, with which the last parameter of a linear model is its bias."""

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Dataset, Wrapped


class WithOnes(Wrapped):
    """The data set ``whole`` with one more feature, the last, which is 1 in every sample."""

    def __init__(self, whole: Dataset) -> None:
        named = (*whole.features, "intercept") if whole.features else ()
        super().__init__(whole, n=whole.n + 1, features=named, intercepts=whole.intercepts + 1)

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        X, y = super().part(lo, hi, test)
        ones = np.ones((len(y), 1), X.dtype)
        return (sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])), y
