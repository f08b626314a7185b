"""Images in files, data sets made of them and of other tables, and the folder of the real ones."""

import os
import struct

import numpy as np

from mpifed.data.dataset import Data

REAL = os.environ.get("MPIFED_DATA", "")


def idx(values, lengths=None):
    """An IDX file of unsigned bytes, whose head may lie about the lengths."""
    lengths = values.shape if lengths is None else lengths
    return (
        bytes([0, 0, 8, len(lengths)]) + struct.pack(f">{len(lengths)}I", *lengths) + values.astype(np.uint8).tobytes()
    )


def build(table, seed=0, dtype="float64", **options):
    """The data set of a table, or of a name and options."""
    table = {"name": table, **options} if isinstance(table, str) else table
    return Data.build(table, "data").load(seed, dtype)


def everything(dataset):
    """All samples, training and test, in a canonical order."""
    (X, y), (X_test, y_test) = dataset.rows(0, dataset.m), dataset.rows_test(0, dataset.m)
    table = np.column_stack([np.concatenate([y, y_test]), np.concatenate([X, X_test])])
    return table[np.lexsort(table.T)]
