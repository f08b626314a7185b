"""The summary of a data set and of how it is divided among clients, which `mpifed data info` prints."""

from collections.abc import Iterator, Sequence

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.labels import listed, shortened
from mpifed.data.survey import Survey, level_names

FIRST = 26  # width of the first column of the summary
LISTED = 20  # rows of a table; a longer one is folded
LAST = 3  # rows at the end of a folded table
WIDE = 10  # classes with a column of their own in the table of clients
BINS, BAR = 16, 24  # characters
SHADES = " ▁▂▃▄▅▆▇█"


def describe(dataset: Dataset, found: Survey) -> str:
    """Clients, samples, features and classes, then a table of classes and one of clients, then the notes."""
    lines = list(summary(dataset, found))
    width = max(FIRST, *(2 + len(name) for name, _ in lines))
    blocks = ["\n".join(f"{name:<{width}}{value}" for name, value in lines)]
    if len(found.levels):
        blocks.append(table(classes(dataset, found)))
    blocks.append(table(clients(dataset, found)))
    blocks += [f"note: {note}" for note in dataset.notes]
    return "\n\n".join(blocks)


def summary(dataset: Dataset, found: Survey) -> Iterator[tuple[str, str]]:
    """Names and values of the first lines."""
    d = int(dataset.sizes.sum())
    tests = dataset.sizes_test
    names = level_names(dataset, found.levels)
    yield "clients m", f"{dataset.m}"
    yield "samples d", f"{d}"
    yield "features n", f"{dataset.n}"
    yield "test samples", "none" if tests is None else f"{int(tests.sum())}"
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


def classes(dataset: Dataset, found: Survey) -> list[list[str]]:
    """A header, then a row for each class: its samples, their share, how many clients have any, and a bar."""
    names = level_names(dataset, found.levels)
    samples = np.asarray(found.counts.sum(axis=0)).ravel()
    owners = np.bincount(found.counts.indices, minlength=len(found.levels))
    rows = [["class", "samples", "share", "clients", ""]]
    kept = shown(len(names))
    for k in kept:
        bar = "█" * round(BAR * samples[k] / samples.max())
        share = f"{100 * samples[k] / samples.sum():.1f} %"
        rows.append([shortened(names[k]), f"{samples[k]}", share, f"{owners[k]}", bar.ljust(BAR)])
    if len(kept) < len(names):
        rows.insert(len(rows) - LAST, [f"… {len(names) - len(kept)} more classes"])
    return rows


def clients(dataset: Dataset, found: Survey) -> list[list[str]]:
    """A header, then a row for each client: samples, and samples of each class or what its labels are like."""
    names = level_names(dataset, found.levels)
    tests = dataset.sizes_test
    kept = shown(dataset.m)
    head, cells = columns_of_labels(names, found, list(kept))
    rows = [["client", "samples", *([] if tests is None else ["test"]), *head]]
    for i, more in zip(kept, cells, strict=True):
        rows.append([f"{i}", f"{dataset.sizes[i]}", *([] if tests is None else [f"{tests[i]}"]), *more])
    if len(kept) < dataset.m:
        rows.insert(len(rows) - LAST, [f"… {dataset.m - len(kept)} more clients"])
    return rows


def columns_of_labels(names: Sequence[str], found: Survey, kept: list[int]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells: of numbers mean, deviation and range; of classes how many, and each or the most frequent."""
    if not names:
        columns = (found.mean, found.deviation, found.low, found.high)
        return ["mean y", "sd y", "min y", "max y"], [[f"{column[i]:.4g}" for column in columns] for i in kept]
    counts = found.counts[kept].toarray()
    own = [f"{number}" for number in np.count_nonzero(counts, axis=1)]
    if len(names) <= WIDE:
        cells = [[n, *(f"{count}" if count else "·" for count in row)] for n, row in zip(own, counts, strict=True)]
        return ["classes", *(f"{shortened(name)}:" for name in names)], cells
    tops = [(shortened(names[row.argmax()]), f"{100 * row.max() / row.sum():.0f} %") for row in counts]
    return ["classes", "most frequent", "share"], [[n, *top] for n, top in zip(own, tops, strict=True)]


def shown(count: int) -> Sequence[int]:
    """Which rows of a table are shown: all, or the first ones and the last."""
    return range(count) if count <= LISTED else [*range(LISTED - LAST), *range(count - LAST, count)]


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
