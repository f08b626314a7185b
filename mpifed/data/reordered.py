"""A data set with its clients in another order, or some of them alone."""

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Dataset, Wrapped


class Reordered(Wrapped):
    """The data set ``whole`` with the clients ``order``, in this order."""

    def __init__(self, whole: Dataset, order: Array) -> None:
        tests = None if whole.sizes_test is None else np.asarray(whole.sizes_test)[order]
        owners = tuple(whole.owners[i] for i in order) if whole.owners else ()
        super().__init__(whole, m=len(order), sizes=np.asarray(whole.sizes)[order], sizes_test=tests, owners=owners)
        self.columns = None if whole.columns is None else whole.columns.arranged(order)
        self.client_weights = None if whole.client_weights is None else whole.client_weights[order]
        self.order = order

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        own = self.order[lo:hi]
        # Neighbours are read together: [4, 5, 9] are the runs 4 to 5 and 9, which a file reads in two pieces.
        runs = np.split(own, np.flatnonzero(np.diff(own) != 1) + 1)
        parts = [super(Reordered, self).part(int(run[0]), int(run[-1]) + 1, test) for run in runs if len(run)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return super().part(0, 0, test)
        X, y = zip(*parts, strict=True)
        return (sp.vstack(X, format="csr") if self.sparse else np.concatenate(X)), np.concatenate(y)
