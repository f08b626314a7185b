"""The summary of a data set and of how it is divided among clients, which `mpifed data info` prints."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, ranges
from mpifed.data.labels import exact, folded, listed, shortened, whole
from mpifed.data.tables.missing import MissingCells

FIRST = 26  # width of the first column of the summary
LISTED = 20  # rows of a table; a longer one is folded
LAST = 3  # rows at the end of a folded table
WIDE = 10  # classes with a column of their own in the table of clients
BINS, BAR = 16, 24  # characters
SHADES = " ▁▂▃▄▅▆▇█"
READ = 1 << 22  # numbers of X read at a time
CLASSES = 1000  # more different whole numbers are taken as numbers, not as classes


class Survey(NamedTuple):
    """What is in the training samples of m clients: how many numbers are not 0, and which labels each client has."""

    nonzeros: int
    names: list[str]  # of the C labels that occur, in rising order; none where labels are not classes
    counts: Any  # (m, C) samples of each client and class, CSR
    mean: Array  # (m,) of the labels of each client, as the next three
    deviation: Array
    low: Array
    high: Array
    least: Array  # (n,) of each feature
    most: Array


def survey(dataset: Dataset) -> Survey:
    """Read all training samples, a few clients at a time."""
    levels = levels_of(dataset)
    nonzeros = 0
    counts = []
    moments = []
    least = np.full(dataset.n, np.inf)
    most = np.full(dataset.n, -np.inf)
    for lo, hi in ranges(dataset.sizes, dataset.n, READ):
        X, y = dataset.rows(lo, hi)
        least = np.minimum(least, extreme(X, "min"))
        most = np.maximum(most, extreme(X, "max"))
        nonzeros += X.count_nonzero() if sp.issparse(X) else int(np.count_nonzero(X))
        sizes = dataset.sizes[lo:hi]
        starts = np.cumsum(sizes) - sizes
        y = y.astype(np.float64)
        mean = np.add.reduceat(y, starts) / sizes
        client = np.repeat(np.arange(hi - lo), sizes)
        square = np.add.reduceat((y - mean[client]) ** 2, starts) / sizes
        moments.append((mean, np.sqrt(square), np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)))
        if len(levels):
            column = np.searchsorted(levels, y)
            counts.append(sp.coo_array((np.ones(len(y), np.int64), (client, column)), (hi - lo, len(levels))).tocsr())
    whole_counts = sp.vstack(counts, format="csr") if counts else sp.csr_array((dataset.m, 0), dtype=np.int64)
    names = [dataset.names[int(level)] for level in levels] if dataset.names else exact(levels)
    return Survey(
        nonzeros, names, whole_counts, *map(np.concatenate, zip(*moments, strict=True)), least=least, most=most
    )  # type: ignore[misc]


def extreme(X: Any, which: str) -> Array:
    found = getattr(X, which)(axis=0)
    return np.asarray(found.toarray() if sp.issparse(found) else found).ravel()


def levels_of(dataset: Dataset) -> Array:
    values = dataset.values()
    if values is None:
        return np.arange(float(dataset.classes))
    few = bool(dataset.names) or len(values) <= CLASSES
    return values.astype(np.float64) if few and whole(values) else np.zeros(0)


def describe(dataset: Dataset, found: Survey) -> str:
    lines = list(summary(dataset, found))
    width = max(FIRST, *(2 + len(name) for name, _ in lines))
    blocks = ["\n".join(f"{name:<{width}}{value}" for name, value in lines)]
    if dataset.table:
        blocks.append(table(features(dataset, found)))
    if found.names:
        blocks.append(table(classes(found)))
    blocks.append(table(clients(dataset, found)))
    blocks += [f"note: {note}" for note in dataset.notes]
    return "\n\n".join(blocks)


def summary(dataset: Dataset, found: Survey) -> Iterator[tuple[str, str]]:
    d = int(dataset.sizes.sum())
    tests = dataset.sizes_test
    names = found.names
    yield "clients m", f"{dataset.m}"
    yield "samples d", f"{d}"
    yield "features n", f"{dataset.n}"
    yield "test samples", "none" if tests is None else f"{int(tests.sum())}"
    names_of = dataset.features or [f"{j}" for j in range(dataset.n)]
    constant = [names_of[j] for j in np.flatnonzero(found.least == found.most) if names_of[j] != "intercept"]
    if constant:
        yield "constant features", f"{len(constant)} ({listed(constant)})"
    kind = "CSR" if dataset.sparse else "dense"
    yield "matrix", f"{kind}, {100 * found.nonzeros / (d * dataset.n):.3g} % nonzero"
    if names:
        yield "classes", f"{len(names)} ({listed(names)})"
    else:
        yield "classes", f"none (labels are numbers from {found.low.min():.4g} to {found.high.max():.4g})"
    if dataset.division:
        yield "partition", dataset.division
    yield "samples per client", spread(dataset.sizes)
    if tests is not None:
        yield "test samples per client", spread(tests)
    if names:
        yield "classes per client", spread(np.diff(found.counts.indptr))
    if len(names) == 2:
        ones = found.counts[:, [1]].toarray().ravel() / dataset.sizes
        yield f"share of {shortened(names[1])} per client", spread(ones)
    if not names:
        yield "mean label per client", spread(found.mean)


def features(dataset: Dataset, found: Survey) -> list[list[str]]:
    """A header, then a row for each column of a table: missing cells, range in training samples, or levels."""

    def row(k: int) -> list[str]:
        one = dataset.table[k]
        if one.category:
            first = [] if one.dropped is None else [f"[{shortened(one.dropped)}]"]
            values = ", ".join([*first, *map(shortened, folded(one.levels))])
        else:
            values = f"{found.least[one.first]:.4g} to {found.most[one.first]:.4g}"
        return [shortened(one.name), f"{one.width}", f"{one.missing}" if one.missing else "·", values]

    return shown(["column", "features", "missing", "range or levels [reference]"], row, len(dataset.table), "columns")


def missing_cells(refused: MissingCells) -> str:
    """What is known of a table that is refused for its missing cells: how many each column has."""
    counts = list(refused.counts.items())

    def row(k: int) -> list[str]:
        name, count = counts[k]
        return [shortened(name), f"{count}", f"{100 * count / refused.rows:.1f} %"]

    lines = (
        ("rows", f"{refused.rows}"),
        ("rows without missing cells", f"{refused.complete}"),
        ("missing cells", f"{sum(refused.counts.values())}"),
    )
    head = "\n".join(f"{name:<{FIRST + 2}}{value}" for name, value in lines)
    return f"{head}\n\n{table(shown(['column', 'missing', 'share'], row, len(counts), 'columns'))}\n\nnote: {refused}"


def classes(found: Survey) -> list[list[str]]:
    """A header, then a row for each class: its samples, their share, how many clients have any, and a bar."""
    names = found.names
    samples = np.asarray(found.counts.sum(axis=0)).ravel()
    owners = np.bincount(found.counts.indices, minlength=len(names))

    def row(k: int) -> list[str]:
        bar = "█" * round(BAR * samples[k] / samples.max())
        share = f"{100 * samples[k] / samples.sum():.1f} %"
        return [shortened(names[k]), f"{samples[k]}", share, f"{owners[k]}", bar.ljust(BAR)]

    return shown(["class", "samples", "share", "clients", ""], row, len(names), "classes")


def clients(dataset: Dataset, found: Survey) -> list[list[str]]:
    """A header, then a row for each client: samples, and samples of each class or what its labels are like."""
    tests = dataset.sizes_test
    named = bool(dataset.owners)

    def row(i: int) -> list[str]:
        own = [shortened(dataset.owners[i])] if named else []
        tested = [] if tests is None else [f"{tests[i]}"]
        return [f"{i}", *own, f"{dataset.sizes[i]}", *tested, *labels_of(found, i)]

    labels = ["mean y", "sd y", "min y", "max y"]
    if found.names:
        each = [f"{shortened(name)}:" for name in found.names]
        labels = ["classes", *(each if len(each) <= WIDE else ["most frequent", "share"])]
    front = ["client", *(["name"] if named else []), "samples", *([] if tests is None else ["test"])]
    return shown([*front, *labels], row, dataset.m, "clients")


def labels_of(found: Survey, i: int) -> list[str]:
    """Of client i: of numbers mean, deviation and range; of classes how many, and each or the most frequent."""
    if not found.names:
        return [f"{column[i]:.4g}" for column in (found.mean, found.deviation, found.low, found.high)]
    counts = found.counts[[i]].toarray().ravel()
    own = f"{np.count_nonzero(counts)}"
    if len(counts) <= WIDE:
        return [own, *(f"{count}" if count else "·" for count in counts)]
    return [own, shortened(found.names[counts.argmax()]), f"{100 * counts.max() / counts.sum():.0f} %"]


def shown(head: list[str], row: Callable[[int], list[str]], count: int, what: str) -> list[list[str]]:
    """A header, then ``row(k)`` for k < count; of many the first ones and the last."""
    # Rows are made only where they are shown, for there may be a million clients.
    if count <= LISTED:
        return [head, *map(row, range(count))]
    first, last = (map(row, part) for part in (range(LISTED - LAST), range(count - LAST, count)))
    return [head, *first, [f"… {count - LISTED} more {what}"], *last]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns that are aligned on the right; a row of one cell stands for those that are left out."""
    width = [max(len(row[k]) for row in rows if len(row) > 1) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=False)).rstrip() for row in rows)


def spread(values: Array) -> str:
    """Minimum, median and maximum of a value of each client (m,), and a histogram where they differ."""
    counts = np.issubdtype(values.dtype, np.integer)
    low, median, high = (
        f"{q:.1f}".removesuffix(".0") if counts else f"{q:.4g}" for q in np.quantile(values, [0, 0.5, 1])
    )
    text = f"min {low}, median {median}, max {high}"
    return text if values.min() == values.max() else f"{text}  {histogram(values)}"


def histogram(values: Array) -> str:
    """How many values lie in each of some equal parts of their range, one character a part; a blank is none."""
    bins = min(BINS, int(np.ptp(values)) + 1) if np.issubdtype(values.dtype, np.integer) else BINS
    counts, _ = np.histogram(values, bins)
    return "▕" + "".join(SHADES[int(np.ceil((len(SHADES) - 1) * count / counts.max()))] for count in counts) + "▏"
