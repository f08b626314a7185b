"""The picture of benchmarks.speed.roofline: attainable and achieved flops a second, by flops for each byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.report.palette import BLUE, MARKERS, VERMILION
from mpifed.report.style import drawing

LEFT, RIGHT = 0.03, 40  # flops for each byte
COLOURS = {"numpy": BLUE, "compiled": VERMILION}
GREY = "0.35"
APART = 1.1  # points of the same flops for each byte stand side by side, by this factor
ALIKE = 0.1  # flops for each byte that differ by less are the same


class Ceiling(NamedTuple):
    """A limit of the machine, in bytes or flops a second: alone, and with all cores busy."""

    name: str
    unit: str
    alone: float
    busy: float | None


class Point(NamedTuple):
    """A kernel: flops for each byte of the samples, and flops a second."""

    name: str
    kind: str  # numpy or compiled
    intensity: float
    alone: float
    busy: float | None


def draw(limits: Sequence[Ceiling], found: dict[str, list[Point]], path: Path) -> bool:
    """Write the picture, one panel for each type of numbers. Returns False if matplotlib is not installed."""
    try:
        import matplotlib.figure
    except ImportError:
        return False
    with drawing():
        page = matplotlib.figure.Figure(figsize=(7.2, 6.2), layout="constrained", dpi=150)
        axes = page.subplots(len(found), sharex=True, squeeze=False)[:, 0]
        bottom, top = 0.7 * lowest(limits, found), 2 * max(limit.alone for limit in limits if limit.unit != "B/s")
        along = []
        for axis, (dtype, points) in zip(axes, found.items(), strict=True):
            axis.set(xscale="log", yscale="log", xlim=(LEFT, RIGHT), ylim=(bottom / 1e9, top / 1e9))
            axis.set(title=dtype, ylabel="GFLOP/s of a core")
            along += lines(axis, [limit for limit in limits if limit.unit == "B/s" or limit.name == dtype])
            marks(axis, points)
        page.legend(handles=key(next(iter(found.values()))), loc="outside right center", borderaxespad=0.2)
        axes[-1].set_xlabel("flops : byte of the samples")
        page.draw_without_rendering()
        for text in along:
            text.set_rotation(slope(text.axes))
        page.savefig(path, dpi=150)
    return True


def lowest(limits: Sequence[Ceiling], found: dict[str, list[Point]]) -> float:
    """The least flops a second that the picture shows."""
    points = [rate for own in found.values() for point in own for rate in (point.alone, point.busy or point.alone)]
    return min([LEFT * limit.alone for limit in limits if limit.unit == "B/s"] + points)


def slope(axis: Any) -> float:
    """The angle in degrees at which bandwidths rise on the page."""
    left, right = axis.get_xlim()
    low, high = axis.get_ylim()
    box = axis.get_window_extent()
    return float(np.degrees(np.arctan2(box.height / np.log(high / low), box.width / np.log(right / left))))


def lines(axis: Any, limits: Sequence[Ceiling]) -> list[Any]:
    """Draw the ceilings; the labels of the rising ones."""
    (peak,) = (limit.alone / 1e9 for limit in limits if limit.unit != "B/s")
    bandwidths = {limit.name: limit.alone / 1e9 for limit in limits if limit.unit == "B/s"}
    axis.plot([peak / max(bandwidths.values()), RIGHT], [peak, peak], color=GREY)
    axis.text(RIGHT, 1.05 * peak, f"gemm {peak:.3g} GFLOP/s", ha="right", va="bottom", fontsize=6.5, color=GREY)
    found = []
    for name, bandwidth in bandwidths.items():
        axis.plot([LEFT, peak / bandwidth], [LEFT * bandwidth, peak], color=GREY)
        side, shift = ("top", 0.83) if name == "memory" else ("bottom", 1.2)
        look = {"va": side, "fontsize": 6.5, "color": GREY, "rotation_mode": "anchor"}
        text = f"{name} {bandwidth:.3g} GB/s"
        found.append(axis.text(1.15 * LEFT, 1.15 * LEFT * bandwidth * shift, text, **look))
    return found


def marks(axis: Any, points: Sequence[Point]) -> None:
    """Draw the kernels."""
    for point, x in zip(points, places(points), strict=True):
        marker, colour = MARKERS[names(points).index(point.name)], COLOURS[point.kind]
        look = {"color": colour, "marker": marker, "markersize": 5, "linestyle": "none", "zorder": 3}
        axis.plot([x], [point.alone / 1e9], **look)
        if point.busy is not None:
            axis.plot([x * APART], [point.busy / 1e9], **{**look, "mfc": "white"})


def names(points: Sequence[Point]) -> list[str]:
    """The names of the kernels, in order."""
    return list(dict.fromkeys(point.name for point in points))


def places(points: Sequence[Point]) -> list[float]:
    """Where points are drawn: kernels with the same flops for each byte side by side around it."""
    found = []
    for point in points:
        near = [other for other in points if abs(np.log(other.intensity / point.intensity)) < ALIKE]
        found.append(point.intensity * APART ** (2 * (near.index(point) - (len(near) - 1) / 2) - 0.5))
    return found


def key(points: Sequence[Point]) -> list[Any]:
    """The legend."""
    from matplotlib.lines import Line2D

    grey: dict[str, Any] = {"color": GREY, "linestyle": "none", "markersize": 5}
    marks = [Line2D([], [], marker=MARKERS[k], label=name, **grey) for k, name in enumerate(names(points))]
    kinds = [
        Line2D([], [], color=COLOURS[kind], marker="s", linestyle="none", label=kind)
        for kind in dict.fromkeys(point.kind for point in points)
    ]
    loads = [Line2D([], [], marker="o", label="alone", **grey)]
    if any(point.busy is not None for point in points):
        loads.append(Line2D([], [], marker="o", mfc="white", label="all cores busy", **grey))
    return [*marks, *kinds, *loads]
