"""A data set with its clients in another order, or some of them alone."""

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Dataset, DatasetWrapper


class ReorderedDataset(DatasetWrapper):
    """A data set with the clients ``order`` of another one, in this order."""

    def __init__(self, dataset: Dataset, order: Array) -> None:
        tests = None if dataset.sizes_test is None else np.asarray(dataset.sizes_test)[order]
        owners = tuple(dataset.owners[i] for i in order) if dataset.owners else ()
        sizes = np.asarray(dataset.sizes)[order]
        super().__init__(dataset, m=len(order), sizes=sizes, sizes_test=tests, owners=owners)
        self.columns = None if dataset.columns is None else dataset.columns.reorder(order)
        self.client_weights = None if dataset.client_weights is None else dataset.client_weights[order]
        self.order = order

    def read_clients(self, lo: int, hi: int, test: bool) -> tuple[SampleMatrix, Array]:
        ids = self.order[lo:hi]
        # Neighbours are read together: [4, 5, 9] are the runs 4 to 5 and 9, which a file reads in two pieces.
        runs = np.split(ids, np.flatnonzero(np.diff(ids) != 1) + 1)
        parts = [
            super(ReorderedDataset, self).read_clients(int(run[0]), int(run[-1]) + 1, test) for run in runs if len(run)
        ]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return super().read_clients(0, 0, test)
        X, y = zip(*parts, strict=True)
        return (sp.vstack(X, format="csr") if self.sparse else np.concatenate(X)), np.concatenate(y)
