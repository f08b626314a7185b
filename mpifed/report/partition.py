"""A picture of a partition: the samples of each role, a bar a client; below, classes × clients or labels' spread."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array
from mpifed.report.palette import BLUE, VERMILION
from mpifed.report.style import DOUBLE, check_width, escape_dollars, make_heading, matplotlib_style

FEW = 40  # maximum clients that are drawn as separate bars
FEW_CLASSES = 30  # maximum classes that all have their names
ORDERED = 100  # more clients than that are sorted by their most frequent class
COLUMNS = 600  # more clients than that share columns
TICKS = 15  # labels on the axis of classes
ROW = 0.25  # inches of a class
LOWEST, HIGHEST = 1.6, 4.5  # inches of the lower panel
SIZES = 0.9  # inches of the panel of a role
NAME = 14  # letters of a class
GAP = 0.15  # blank on each side of a bar, of the width of a client
LIGHTEST = 0.9  # of matplotlib's viridis; its end is too light on paper
SWATCH = 0.012  # width of the colour of a class, of that of the panel
GREY = "#bbbbbb"


class Division(NamedTuple):
    """The samples of m clients by role and class, or by role where labels are numbers, which ``spread`` describes."""

    roles: dict[str, Any]  # by name, training first: (m, C) CSR, or (m, 1)
    names: Sequence[str]  # of the C classes; none where labels are numbers
    spread: Array  # (4, m) mean, standard deviation, least and largest label of each client

    @property
    def training(self) -> Any:
        return next(iter(self.roles.values()))


def plot_partition(division: Division, title: str, width: float | None = None) -> Any:
    wide = check_width(width, DOUBLE)
    heading = make_heading(wide, title)
    C = len(division.names)
    m = division.training.shape[0]
    panels = [SIZES for _ in division.roles]
    low = min(max(ROW * C, LOWEST), HIGHEST)
    with matplotlib_style() as matplotlib:
        high = sum(panels) + low + 0.7 + 0.16 * heading.count("\n")
        figure = matplotlib.figure.Figure(figsize=(wide, high), layout="constrained")
        *upper, lower = figure.subplots(len(panels) + 1, 1, sharex=True, height_ratios=[*panels, low])
        figure.suptitle(heading)
        order, label = order_clients(division)
        edges = np.linspace(0, m, min(m, COLUMNS) + 1).round().astype(int)
        colours = matplotlib.colormaps["viridis"](np.linspace(0, LIGHTEST, C)) if C else np.array([BLUE])
        for axis, (role, counts) in zip(upper, division.roles.items(), strict=True):
            draw_stacks(axis, mean_columns(counts[order], edges), edges, colours)
            axis.set_ylabel(role)
        if C:
            draw_map(figure, lower, mean_columns(division.training[order], edges), edges)
            label_classes(lower, division.names, colours)
        else:
            draw_spread(lower, division.spread[:, order], edges)
        lower.set(xlabel=label, xlim=(-0.5, m - 0.5))
        lower.xaxis.get_major_locator().set_params(integer=True)
        for axis in (*upper, lower):
            axis.grid(False, axis="x")
    return figure


def order_clients(division: Division) -> tuple[Array, str]:
    """Return the order in which clients are drawn, and the title of their axis."""
    counts = division.training
    m = counts.shape[0]
    if m <= ORDERED:
        return np.arange(m), "client"
    if not len(division.names):
        return np.argsort(division.spread[0], kind="stable"), "clients, sorted by their mean label"
    top = np.asarray(counts.argmax(axis=1)).ravel()
    fraction = counts.max(axis=1).toarray().ravel() / np.maximum(counts.sum(axis=1), 1)
    return np.lexsort([-fraction, top]), "clients, sorted by their most frequent class"


def mean_columns(counts: Any, edges: Array) -> Array:
    """Return the means of ``counts`` (m, C) over the clients of each column, (columns, C)."""
    width = np.diff(edges)
    column = np.repeat(np.arange(len(width)), width)
    return (sp.csr_array((1 / width[column], (column, np.arange(len(column))))) @ counts).toarray()


def draw_stacks(axis: Any, counts: Array, edges: Array, colours: Any) -> None:
    """Draw the samples of each class (columns, C) on top of each other: bars, or areas where there are many clients."""
    from matplotlib.collections import PolyCollection

    few = len(counts) <= FEW
    gap = GAP if few else 0
    tops = np.cumsum(counts, axis=1)
    column, level = np.nonzero(counts)
    top = tops[column, level]
    bottom = top - counts[column, level]
    left = edges[column] - 0.5 + gap
    right = edges[column + 1] - 0.5 - gap
    corners: Any = np.stack([[left, bottom], [right, bottom], [right, top], [left, top]]).transpose(2, 0, 1)
    # One artist, because thousands take minutes; without smoothing, which would leave white lines between areas.
    axis.add_collection(PolyCollection(corners, facecolors=colours[level], antialiased=few, rasterized=not few))
    axis.set_ylim(0, 1.08 * max(tops.max(), 1))
    axis.locator_params(axis="y", nbins=4, integer=True)


def draw_map(figure: Any, axis: Any, means: Array, edges: Array) -> None:
    """Draw a cell for each class and client, or mean of several clients: darker with more samples, white for none."""
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(0.5, 0, means.max())
    cells = (edges - 0.5, np.arange(means.shape[1] + 1) - 0.5)
    mesh = axis.pcolormesh(*cells, means.T, cmap="Blues", norm=norm, rasterized=True)
    mean = " (mean of a column)" if len(means) < edges[-1] else ""
    bar = figure.colorbar(mesh, ax=axis, label=f"samples{mean}", pad=0.01, fraction=0.05)
    bar.locator = bar.ax.yaxis.get_major_locator()
    axis.grid(False)


def label_classes(axis: Any, names: Sequence[str], colours: Any) -> None:
    """Label the axis of classes with as many names as can be read, and each class with its colour."""
    step = -(-len(names) // TICKS) if len(names) > FEW_CLASSES else 1
    shown = [name if len(name) <= NAME else name[: NAME - 1] + "…" for name in names]
    axis.set_yticks(range(0, len(names), step), [escape_dollars(name) for name in shown[::step]])
    axis.set_ylabel("class")
    rows = np.arange(len(names))
    axis.barh(rows, -SWATCH, height=1, color=colours, transform=axis.get_yaxis_transform(), clip_on=False)
    axis.tick_params(axis="y", pad=10)


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
