"""The summary of a data set that `mpifed data info` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mpifed.core.typing import Array
from mpifed.data.base import Dataset

BLOCK = 1 << 22  # numbers of X read at a time
LISTED = 20  # data sets with at most this many clients have one line per client


class Survey(NamedTuple):
    """Statistics from one pass over the training samples."""

    nonzeros: int
    binary: bool  # labels are 0 and 1, or -1 and 1
    labels: Array  # (m,) number of different labels of each client
    ones: Array  # (m,) share of the label 1
    mean: Array  # (m,) mean label


def describe(dataset: Dataset) -> str:
    """A table of clients, samples, features and classes and their distribution; reads every row once."""
    found, d = survey(dataset), int(dataset.sizes.sum())
    no_classes = "none (labels are -1 and 1)" if found.binary else "none (labels are not classes)"
    lines = [
        ("clients m", f"{dataset.m}"),
        ("samples d", f"{d}"),
        ("features n", f"{dataset.n}"),
        ("test samples", "none" if dataset.sizes_test is None else f"{int(dataset.sizes_test.sum())}"),
        ("classes", f"{dataset.classes or no_classes}"),
        ("matrix", f"{'CSR' if dataset.sparse else 'dense'}, {100 * found.nonzeros / (d * dataset.n):.3g} % nonzero"),
        ("samples per client", quantiles(dataset.sizes)),
    ]
    if dataset.sizes_test is not None:
        lines.append(("test samples per client", quantiles(dataset.sizes_test)))
    if dataset.classes:
        lines.append(("classes per client", quantiles(found.labels)))
    if found.binary:
        lines.append(("share of ones per client", quantiles(found.ones)))
    text = "\n".join(f"{name:<26}{value}" for name, value in lines)
    return text if dataset.m > LISTED else text + "\n\n" + "\n".join(clients(dataset, found))


def survey(dataset: Dataset) -> Survey:
    """Read all training samples, a few clients at a time."""
    nonzeros, values = 0, np.zeros(0)
    labels, ones, total = np.zeros((3, dataset.m))
    for lo, hi in groups(dataset):
        X, y = dataset.rows(lo, hi)
        nonzeros += X.count_nonzero() if sp.issparse(X) else int(np.count_nonzero(X))
        client = np.repeat(np.arange(lo, hi), dataset.sizes[lo:hi])
        labels += np.bincount(np.unique(np.stack([client, y]), axis=1)[0].astype(np.int64), minlength=dataset.m)
        ones += np.bincount(client, y == 1, minlength=dataset.m)
        total += np.bincount(client, y, minlength=dataset.m)
        values = np.union1d(values, y)[:3]  # three are enough to decide
    binary = set(values) <= {0, 1} or set(values) <= {-1, 1}
    return Survey(nonzeros, binary, labels, ones / dataset.sizes, total / dataset.sizes)


def groups(dataset: Dataset) -> Iterator[tuple[int, int]]:
    """Ranges lo <= i < hi of clients with about BLOCK numbers, but at least one client."""
    starts = np.concatenate([[0], np.cumsum(dataset.sizes)]) * dataset.n
    lo = 0
    while lo < dataset.m:
        hi = max(lo + 1, int(np.searchsorted(starts, starts[lo] + BLOCK, side="right")) - 1)
        yield lo, hi
        lo = hi


def quantiles(values: Array) -> str:
    """Minimum, quartiles and maximum of a value of each client (m,)."""
    low, first, median, third, high = (f"{q:.4g}" for q in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
    return f"min {low}, quartiles {first} / {median} / {third}, max {high}"


def clients(dataset: Dataset, found: Survey) -> Iterator[str]:
    """A header, then a line for each client."""
    tests = dataset.sizes_test
    last, column = ("classes", found.labels) if dataset.classes else ("mean y", found.mean)
    if found.binary:
        last, column = "ones", found.ones
    yield f"{'client':>6}{'samples':>10}" + (f"{'test':>10}" if tests is not None else "") + f"{last:>10}"
    for i in range(dataset.m):
        test = f"{tests[i]:>10}" if tests is not None else ""
        yield f"{i:>6}{dataset.sizes[i]:>10}{test}{column[i]:>10.4g}"
