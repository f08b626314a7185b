"""The pictures of speed: the roofline of ``kernels``, and efficiencies of ``scaling``.

Each function returns False where matplotlib is not installed, and has drawn nothing then.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.printing import Spread
from mpifed.core.typing import Array
from mpifed.report.palette import BLUE, GREEN, MARKERS, ORANGE, SKY, VERMILION
from mpifed.report.style import matplotlib_style

LEFT, RIGHT = 0.03, 40  # flops for each byte
COLOURS = {"numpy": BLUE, "compiled": VERMILION}
GREY = "0.35"
APART = 1.1  # points of the same flops for each byte stand side by side, by this factor
ALIKE = 0.1  # flops for each byte that differ by less are the same
LOOKS = {"strong": (BLUE, "o"), "weak": (VERMILION, "s")}
SHARES = {"computing": (GREEN, ""), "waiting": (SKY, "////"), "MPI": (ORANGE, "....")}


@contextmanager
def page(path: Path, height: float) -> Iterator[Any]:
    """A page that is written to ``path`` at the end; it needs matplotlib."""
    import matplotlib.figure

    with matplotlib_style():
        found = matplotlib.figure.Figure(figsize=(7.2, height), layout="constrained", dpi=150)
        yield found
        found.savefig(path, dpi=150)


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


def draw_roofline(limits: Sequence[Ceiling], found: dict[str, list[Point]], path: Path) -> bool:
    """Attainable and achieved flops a second by flops for each byte, a panel for each type of numbers."""
    if find_spec("matplotlib") is None:
        return False
    with page(path, 6.2) as whole:
        axes = whole.subplots(len(found), sharex=True, squeeze=False)[:, 0]
        bottom, top = 0.7 * lowest(limits, found), 2 * max(limit.alone for limit in limits if limit.unit != "B/s")
        along = []
        for axis, (dtype, points) in zip(axes, found.items(), strict=True):
            axis.set(xscale="log", yscale="log", xlim=(LEFT, RIGHT), ylim=(bottom / 1e9, top / 1e9))
            axis.set(title=dtype, ylabel="GFLOP/s of a core")
            along += lines(axis, [limit for limit in limits if limit.unit == "B/s" or limit.name == dtype])
            marks(axis, points)
        whole.legend(handles=kernel_key(next(iter(found.values()))), loc="outside right center", borderaxespad=0.2)
        axes[-1].set_xlabel("flops : byte of the samples")
        whole.draw_without_rendering()
        for text in along:
            text.set_rotation(slope(text.axes))
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


def kernel_key(points: Sequence[Point]) -> list[Any]:
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


class Scaled(NamedTuple):
    """A line of the table; ``gain`` is the speed-up for strong and the efficiency for weak scaling."""

    kind: str
    ranks: int
    clients: int
    seconds: Spread
    gain: Spread
    efficiency: Spread
    parts: tuple[float, ...]
    predicted: float  # efficiency
    cores: int | None  # that the ranks share; None: one for each


def draw_scaling(found: Sequence[Scaled], splits: dict[int, Array], title: str, path: Path) -> bool:
    """Efficiency of strong and weak scaling, and the split of each rank's time."""
    if find_spec("matplotlib") is None:
        return False
    with page(path, 4.3) as whole:
        axes = whole.subplot_mosaic([["strong", "weak"], ["split", "split"]], height_ratios=[1.5, 1])
        for kind in LOOKS:
            curve(axes[kind], [point for point in found if point.kind == kind])
        scaling_key(axes["weak"], any(point.cores is not None for point in found))
        bars(axes["split"], splits)
        whole.suptitle(title)
    return True


def curve(axis: Any, points: Sequence[Scaled]) -> None:
    """Draw the efficiency of one kind of scaling: measured, predicted, and what the cores allow."""
    kind, first = points[0].kind, points[0].ranks
    colour, marker = LOOKS[kind]
    ranks = np.array([point.ranks for point in points])
    middle, least, most = np.array([point.efficiency for point in points]).T
    shared = np.array([point.cores is not None for point in points])
    limit = [1 if point.cores is None else min(1, point.cores / point.ranks) for point in points]
    axis.plot(ranks, limit, "--", color="0.35")
    axis.plot(ranks, [point.predicted for point in points], "-", color="black")
    look = {"color": colour, "linestyle": "none", "capsize": 3, "markersize": 5, "marker": marker}
    for chosen, face in ((~shared, colour), (shared, "white")):
        bounds = np.array([middle - least, most - middle])[:, chosen]
        axis.errorbar(ranks[chosen], middle[chosen], bounds, mfc=face, **look)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(p) for p in ranks])
    axis.minorticks_off()
    axis.set_xlim(ranks[0] / 1.25, ranks[-1] * 1.25)
    if shared.any():
        start = ranks[np.argmax(shared)]
        before = ranks[np.argmax(shared) - 1] if start > ranks[0] else start / 1.5
        axis.axvspan(np.sqrt(start * before), ranks[-1] * 1.25, color="0.93", zorder=0, linewidth=0)
    axis.set_ylim(0, max(1.25, 1.1 * most.max()))
    if kind == "strong":
        times = ""
        formula = f"T({first})/(P T(P))" if first == 1 else f"{first} T({first})/(P T(P))"
    else:
        times = " × P" if first == 1 else f" × P/{first}"
        formula = f"T({first})/T(P)"
    axis.set(title=f"{kind}: {points[0].clients:,} clients{times}", ylabel=f"efficiency {formula}")
    axis.set_xlabel("client ranks P (plus one server)")


def scaling_key(axis: Any, shared: bool) -> None:
    """Draw the legend of both curves on the right; ``shared``: some ranks share cores."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks: dict[str, Any] = {"color": "0.35", "marker": "o", "linestyle": "none"}
    entries: dict[str, Any] = {
        "cost model": Line2D([], [], color="black"),
        "what the cores allow": Line2D([], [], color="0.35", linestyle="--"),
        "measured": Line2D([], [], **marks),
    }
    if shared:
        entries["measured,\nranks share cores"] = Line2D([], [], mfc="white", **marks)
        entries["more ranks\nthan cores"] = Patch(color="0.93")
    axis.legend(list(entries.values()), list(entries), loc="center left", bbox_to_anchor=(1.0, 0.5))


def bars(axis: Any, splits: dict[int, Array]) -> None:
    """Draw how each rank divides its time, in a group of bars for each number of client ranks, the server first."""
    for group, split in enumerate(splits.values()):
        shares = split / np.maximum(split.sum(axis=1, keepdims=True), 1e-12)
        width = 0.86 / len(shares)
        places = group - 0.43 + width * (np.arange(len(shares)) + 0.5)
        floor = np.zeros(len(shares))
        for share, (name, (colour, hatch)) in zip(shares.T, SHARES.items(), strict=True):
            look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5 if len(shares) < 20 else 0}
            axis.bar(places, share, width, floor, label=name if group == 0 else None, **look)
            floor += share
        axis.text(places[0], 1.02, "server", ha="center", va="bottom", fontsize=6)
    labels = [f"P = {p}" for p in splits]
    axis.set_xticks(range(len(splits)), labels)
    axis.tick_params(axis="x", length=0)
    axis.set(ylim=(0, 1.15), yticks=[0, 0.5, 1], ylabel="share of a rank's time", title="strong: each rank's time")
    axis.grid(False, axis="x")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
