"""The summary of a data set and its division among clients, which `mpifed data info` prints."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.roles import TEST, TRAINING, VALIDATION
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, iter_client_ranges
from mpifed.data.labels import abridge, are_whole, format_exactly, join_words, shorten
from mpifed.data.tables.features import MissingCells

FIRST = 26  # width of the first column of the summary
LISTED = 20  # rows of a table; a longer one is folded
LAST = 3  # rows at the end of a folded table
WIDE = 10  # classes with a column of their own in the table of clients
BINS, BAR = 16, 24  # characters
SHADES = " ▁▂▃▄▅▆▇█"
READ = 1 << 22  # numbers of X read at a time
CLASSES = 1000  # more different whole numbers are taken as numbers, not as classes


class Survey(NamedTuple):
    """Statistics of the training samples of m clients: nonzero numbers, labels of each client, ranges of features."""

    nonzeros: int
    names: list[str]  # of the C labels that occur, in rising order; none where labels are not classes
    counts: Any  # (m, C) samples of each client and class, CSR
    mean: Array  # (m,) of the labels of each client, as the next three
    deviation: Array
    low: Array
    high: Array
    minimum: Array  # (n,) of each feature
    maximum: Array


def survey(dataset: Dataset) -> Survey:
    """Compute the statistics of all training samples, a few clients at a time."""
    levels = label_values(dataset)
    nonzeros = 0
    counts = []
    moments = []
    minimum = np.full(dataset.n, np.inf)
    maximum = np.full(dataset.n, -np.inf)
    for lo, hi in iter_client_ranges(dataset.sizes, dataset.n, READ):
        X, y = dataset.rows(lo, hi)
        minimum = np.minimum(minimum, column_extremes(X, "min"))
        maximum = np.maximum(maximum, column_extremes(X, "max"))
        nonzeros += X.count_nonzero() if sp.issparse(X) else int(np.count_nonzero(X))
        sizes = dataset.sizes[lo:hi]
        starts = np.cumsum(sizes) - sizes
        y = y.astype(np.float64)
        mean = np.add.reduceat(y, starts) / sizes
        client = np.repeat(np.arange(hi - lo), sizes)
        square = np.add.reduceat((y - mean[client]) ** 2, starts) / sizes
        moments.append((mean, np.sqrt(square), np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)))
        if len(levels):
            counts.append(count_levels(y, sizes, levels))
    all_counts = sp.vstack(counts, format="csr") if counts else sp.csr_array((dataset.m, 0), dtype=np.int64)
    names = [dataset.names[int(level)] for level in levels] if dataset.names else format_exactly(levels)
    by_client = map(np.concatenate, zip(*moments, strict=True))
    return Survey(nonzeros, names, all_counts, *by_client, minimum=minimum, maximum=maximum)  # type: ignore[misc]


def count_levels(y: Array, sizes: Array, levels: Array) -> Any:
    """Return the samples of c clients with ``sizes`` (c,) by label, (c, C) CSR, of ``levels`` (C,)."""
    client = np.repeat(np.arange(len(sizes)), sizes)
    one = np.ones(len(y), np.int64)
    return sp.coo_array((one, (client, np.searchsorted(levels, y))), (len(sizes), len(levels))).tocsr()


def count_roles(dataset: Dataset) -> dict[str, Any]:
    """Return the samples of each role by client and class, (m, C) CSR; (m, 1) where labels are numbers."""
    sizes = {TRAINING: dataset.sizes, **dataset.held_out()}
    return {role: count_role(dataset, role, sizes[role]) for role in (TRAINING, VALIDATION, TEST) if role in sizes}


def count_role(dataset: Dataset, role: str, sizes: Array) -> Any:
    levels = label_values(dataset)
    if not len(levels):
        return sp.csr_array(sizes[:, None])
    ranges = iter_client_ranges(sizes, dataset.n, READ)
    return sp.vstack(
        [count_levels(dataset.read(role, lo, hi)[1], sizes[lo:hi], levels) for lo, hi in ranges], format="csr"
    )


def column_extremes(X: Any, method: str) -> Array:
    extremes = getattr(X, method)(axis=0)
    return np.asarray(extremes.toarray() if sp.issparse(extremes) else extremes).ravel()


def label_values(dataset: Dataset) -> Array:
    """Return the labels that stand for classes, rising; none where labels are numbers."""
    values = dataset.values()
    if values is None:
        return np.arange(float(dataset.classes))
    few = bool(dataset.names) or len(values) <= CLASSES
    return values.astype(np.float64) if few and are_whole(values) else np.zeros(0)


def describe(dataset: Dataset, stats: Survey) -> str:
    lines = list(iter_summary_lines(dataset, stats))
    width = max(FIRST, *(2 + len(name) for name, _ in lines))
    blocks = ["\n".join(f"{name:<{width}}{value}" for name, value in lines)]
    if dataset.table:
        blocks.append(align(tabulate_features(dataset, stats)))
    if stats.names:
        blocks.append(align(tabulate_classes(stats)))
    blocks.append(align(tabulate_clients(dataset, stats)))
    blocks += [f"note: {note}" for note in dataset.notes]
    return "\n\n".join(blocks)


def iter_summary_lines(dataset: Dataset, stats: Survey) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each line of the summary."""
    d = int(dataset.sizes.sum())
    held = dataset.held_out()
    names = stats.names
    yield "clients m", f"{dataset.m}"
    yield "samples d", f"{d}"
    yield "features n", f"{dataset.n}"
    for role, sizes in {TEST: None, **held}.items():
        yield f"{role} samples", "none" if sizes is None else f"{int(sizes.sum())}"
    names_of = dataset.features or [f"{j}" for j in range(dataset.n)]
    constant = [names_of[j] for j in np.flatnonzero(stats.minimum == stats.maximum) if names_of[j] != "intercept"]
    if constant:
        yield "constant features", f"{len(constant)} ({join_words(constant)})"
    storage = "CSR" if dataset.sparse else "dense"
    yield "matrix", f"{storage}, {100 * stats.nonzeros / (d * dataset.n):.3g} % nonzero"
    if names:
        yield "classes", f"{len(names)} ({join_words(names)})"
    else:
        yield "classes", f"none (labels are numbers from {stats.low.min():.4g} to {stats.high.max():.4g})"
    if dataset.division:
        yield "partition", dataset.division
    yield "samples per client", show_spread(dataset.sizes)
    for role, sizes in held.items():
        yield f"{role} samples per client", show_spread(sizes)
    if names:
        yield "classes per client", show_spread(np.diff(stats.counts.indptr))
    if len(names) == 2:
        ones = stats.counts[:, [1]].toarray().ravel() / dataset.sizes
        yield f"share of {shorten(names[1])} per client", show_spread(ones)
    if not names:
        yield "mean label per client", show_spread(stats.mean)


def tabulate_features(dataset: Dataset, stats: Survey) -> list[list[str]]:
    """Return a header and a row for each column of a table: missing cells, and its range in training or its levels."""

    def row(k: int) -> list[str]:
        one = dataset.table[k]
        if one.category:
            first = [] if one.dropped is None else [f"[{shorten(one.dropped)}]"]
            values = ", ".join([*first, *map(shorten, abridge(one.levels))])
        else:
            values = f"{stats.minimum[one.first]:.4g} to {stats.maximum[one.first]:.4g}"
        return [shorten(one.name), f"{one.width}", f"{one.missing}" if one.missing else "·", values]

    return fold(["column", "features", "missing", "range or levels [reference]"], row, len(dataset.table), "columns")


def describe_missing_cells(refused: MissingCells) -> str:
    """Return the summary of a table that is refused for its missing cells: how many each column has."""
    counts = list(refused.counts.items())

    def row(k: int) -> list[str]:
        name, count = counts[k]
        return [shorten(name), f"{count}", f"{100 * count / refused.rows:.1f} %"]

    lines = (
        ("rows", f"{refused.rows}"),
        ("rows without missing cells", f"{refused.complete}"),
        ("missing cells", f"{sum(refused.counts.values())}"),
    )
    head = "\n".join(f"{name:<{FIRST + 2}}{value}" for name, value in lines)
    return f"{head}\n\n{align(fold(['column', 'missing', 'share'], row, len(counts), 'columns'))}\n\nnote: {refused}"


def tabulate_classes(stats: Survey) -> list[list[str]]:
    """Return a header and a row for each class: samples, their share, number of clients that have any, and a bar."""
    names = stats.names
    samples = np.asarray(stats.counts.sum(axis=0)).ravel()
    owners = np.bincount(stats.counts.indices, minlength=len(names))

    def row(k: int) -> list[str]:
        bar = "█" * round(BAR * samples[k] / samples.max())
        share = f"{100 * samples[k] / samples.sum():.1f} %"
        return [shorten(names[k]), f"{samples[k]}", share, f"{owners[k]}", bar.ljust(BAR)]

    return fold(["class", "samples", "share", "clients", ""], row, len(names), "classes")


def tabulate_clients(dataset: Dataset, stats: Survey) -> list[list[str]]:
    """Return a header and a row for each client: samples, and samples of each class or moments of its labels."""
    held = dataset.held_out()
    named = bool(dataset.owners)

    def row(i: int) -> list[str]:
        name = [shorten(dataset.owners[i])] if named else []
        others = [f"{sizes[i]}" for sizes in held.values()]
        return [f"{i}", *name, f"{dataset.sizes[i]}", *others, *describe_labels(stats, i)]

    labels = ["mean y", "sd y", "min y", "max y"]
    if stats.names:
        each = [f"{shorten(name)}:" for name in stats.names]
        labels = ["classes", *(each if len(each) <= WIDE else ["most frequent", "share"])]
    front = ["client", *(["name"] if named else []), "samples", *held]
    return fold([*front, *labels], row, dataset.m, "clients")


def describe_labels(stats: Survey, i: int) -> list[str]:
    """Return the cells on the labels of client i: their moments and range, or the number and sizes of classes."""
    if not stats.names:
        return [f"{column[i]:.4g}" for column in (stats.mean, stats.deviation, stats.low, stats.high)]
    counts = stats.counts[[i]].toarray().ravel()
    classes = f"{np.count_nonzero(counts)}"
    if len(counts) <= WIDE:
        return [classes, *(f"{count}" if count else "·" for count in counts)]
    return [classes, shorten(stats.names[counts.argmax()]), f"{100 * counts.max() / counts.sum():.0f} %"]


def fold(head: list[str], row: Callable[[int], list[str]], count: int, what: str) -> list[list[str]]:
    """Return a header and the rows ``row(k)`` for k < count, or only the first and the last if there are many."""
    # Only these rows are made, because there may be a million clients.
    if count <= LISTED:
        return [head, *map(row, range(count))]
    first, last = (map(row, part) for part in (range(LISTED - LAST), range(count - LAST, count)))
    return [head, *first, [f"… {count - LISTED} more {what}"], *last]


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text with columns aligned on the right; a row of one cell stands for rows left out."""
    width = [max(len(row[k]) for row in rows if len(row) > 1) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=False)).rstrip() for row in rows)


def show_spread(values: Array) -> str:
    """Return minimum, median and maximum of the clients' values (m,), and a histogram where they differ."""
    counts = np.issubdtype(values.dtype, np.integer)
    low, median, high = (
        f"{q:.1f}".removesuffix(".0") if counts else f"{q:.4g}" for q in np.quantile(values, [0, 0.5, 1])
    )
    text = f"min {low}, median {median}, max {high}"
    return text if values.min() == values.max() else f"{text}  {histogram(values)}"


def histogram(values: Array) -> str:
    """Return a histogram of the values with a character for each bin; a blank is an empty bin."""
    bins = min(BINS, int(np.ptp(values)) + 1) if np.issubdtype(values.dtype, np.integer) else BINS
    counts, _ = np.histogram(values, bins)
    return "▕" + "".join(SHADES[int(np.ceil((len(SHADES) - 1) * count / counts.max()))] for count in counts) + "▏"
