"""A picture of a partition: classes × clients, or the spread of the labels of each client, below its size."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array
from mpifed.report.palette import BLUE, VERMILION
from mpifed.report.style import DOUBLE, check_width, escape_dollars, make_heading, matplotlib_style

FEW = 40  # maximum clients that are drawn as bubbles
FEW_CLASSES = 30  # maximum classes of these
ORDERED = 100  # more clients than that are sorted by their most frequent class
COLUMNS = 600  # more clients than that share columns
TICKS = 15  # labels on the axis of classes
ROW = 0.25  # inches of a class
LOWEST, HIGHEST = 1.6, 4.5  # inches of the lower panel
SIZES = 0.9  # inches of the upper panel
NAME = 14  # letters of a class
SMALLEST = 2.0  # square points of a bubble, so that one sample can be seen
GREY = "#bbbbbb"


class Division(NamedTuple):
    """The samples of m clients. ``counts`` has no classes where labels are numbers, which ``spread`` describes."""

    sizes: Array  # (m,)
    names: Sequence[str]  # of the C classes
    counts: Any  # (m, C) CSR
    spread: Array  # (4, m) mean, standard deviation, least and largest label of each client


def plot_partition(division: Division, title: str, width: float | None = None) -> Any:
    wide = check_width(width, DOUBLE)
    heading = make_heading(wide, title)
    C = len(division.names)
    m = len(division.sizes)
    low = min(max(ROW * C, LOWEST), HIGHEST)
    with matplotlib_style() as matplotlib:
        high = SIZES + low + 0.7 + 0.16 * heading.count("\n")
        figure = matplotlib.figure.Figure(figsize=(wide, high), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[SIZES, low])
        figure.suptitle(heading)
        order, label = order_clients(division)
        edges = np.linspace(0, m, min(m, COLUMNS) + 1).round().astype(int)
        counts = division.counts[order]
        draw_sizes(upper, division.sizes[order], edges)
        if not C:
            draw_spread(lower, division.spread[:, order], edges)
        elif m <= FEW and C <= FEW_CLASSES:
            draw_bubbles(figure, lower, counts.toarray(), division.names, (72 * 0.85 * wide / m, 72 * low / C))
        else:
            draw_map(figure, lower, counts, edges, division.names)
        lower.set(xlabel=label, xlim=(-0.5, m - 0.5))
        lower.xaxis.get_major_locator().set_params(integer=True)
        for axis in (upper, lower):
            axis.grid(False, axis="x")
    return figure


def order_clients(division: Division) -> tuple[Array, str]:
    """Return the order in which clients are drawn, and the title of their axis."""
    m = len(division.sizes)
    if m <= ORDERED:
        return np.arange(m), "client"
    if not len(division.names):
        return np.argsort(division.spread[0], kind="stable"), "clients, sorted by their mean label"
    top = np.asarray(division.counts.argmax(axis=1)).ravel()
    fraction = division.counts.max(axis=1).toarray().ravel() / np.maximum(division.sizes, 1)
    return np.lexsort([-fraction, top]), "clients, sorted by their most frequent class"


def draw_sizes(axis: Any, sizes: Array, edges: Array) -> None:
    """Draw the number of samples of each client: bars, or one area where there are many."""
    if len(sizes) <= FEW:
        axis.bar(np.arange(len(sizes)), sizes, width=0.7, color=BLUE)
    else:
        axis.stairs(np.add.reduceat(sizes, edges[:-1]) / np.diff(edges), edges - 0.5, fill=True, color=BLUE)
    axis.set(ylabel="samples", ylim=(0, 1.08 * sizes.max()))
    axis.locator_params(axis="y", nbins=4, integer=True)


def draw_bubbles(figure: Any, axis: Any, counts: Array, names: Sequence[str], cell: tuple[float, float]) -> None:
    """Draw a circle for each client and class, with area in proportion to samples; ``cell`` is its room in points."""
    client, level = np.nonzero(counts)
    largest = counts.max()
    room = (0.95 * max(min(cell), 7.0)) ** 2  # the area of the largest bubble
    areas = np.maximum(room * counts[client, level] / largest, SMALLEST)
    axis.scatter(client, level, s=areas, color=BLUE, alpha=0.85, linewidths=0)
    steps = sorted({max(1, int(float(f"{largest * fraction:.0e}"))) for fraction in (0.1, 0.4, 0.9)})
    handles = [axis.scatter([], [], s=room * step / largest, color=BLUE, alpha=0.85, linewidths=0) for step in steps]
    figure.legend(handles, [str(step) for step in steps], title="samples", loc="outside right center", labelspacing=1.0)
    label_classes(axis, names)
    axis.set_ylim(-0.7, len(names) - 0.3)


def draw_map(figure: Any, axis: Any, counts: Any, edges: Array, names: Sequence[str]) -> None:
    """Draw a cell for each class and client, or mean of several clients: darker with more samples, white for none."""
    from matplotlib.colors import PowerNorm

    width = np.diff(edges)
    column = np.repeat(np.arange(len(width)), width)
    members = sp.csr_array((1 / width[column], (column, np.arange(len(column)))))
    means = (members @ counts).toarray()
    norm = PowerNorm(0.5, 0, means.max())
    cells = (edges - 0.5, np.arange(len(names) + 1) - 0.5)
    mesh = axis.pcolormesh(*cells, means.T, cmap="Blues", norm=norm, rasterized=True)
    mean = " (mean of a column)" if len(means) < edges[-1] else ""
    bar = figure.colorbar(mesh, ax=axis, label=f"samples{mean}", pad=0.01, fraction=0.05)
    bar.locator = bar.ax.yaxis.get_major_locator()
    label_classes(axis, names)
    axis.grid(False)


def label_classes(axis: Any, names: Sequence[str]) -> None:
    """Label the axis of classes with as many names as can be read."""
    step = -(-len(names) // TICKS) if len(names) > FEW_CLASSES else 1
    shown = [name if len(name) <= NAME else name[: NAME - 1] + "…" for name in names]
    axis.set_yticks(range(0, len(names), step), [escape_dollars(name) for name in shown[::step]])
    axis.set_ylabel("class")


def draw_spread(axis: Any, spread: Array, edges: Array) -> None:
    mean, deviation, low, high = spread
    x = np.arange(len(mean))
    if len(mean) <= FEW:
        axis.vlines(x, low, high, color=GREY, linewidth=1.0, label="range")
        axis.vlines(x, mean - deviation, mean + deviation, color=BLUE, linewidth=3.0, label="mean ± sd")
        axis.plot(x, mean, linestyle="none", marker="o", color=VERMILION, label="mean")
    else:
        first = edges[:-1]
        width = np.diff(edges)
        middle = first + (width - 1) / 2
        mean, deviation = (np.add.reduceat(values, first) / width for values in (mean, deviation))
        low = np.minimum.reduceat(low, first)
        high = np.maximum.reduceat(high, first)
        area = {"alpha": 0.5, "linewidth": 0}
        axis.fill_between(middle, low, high, color=GREY, label="range", **area)
        axis.fill_between(middle, mean - deviation, mean + deviation, color=BLUE, label="mean ± sd", **area)
        axis.plot(middle, mean, color=VERMILION, label="mean")
    axis.set_ylabel("label")
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
