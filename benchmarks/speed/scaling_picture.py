"""The picture of benchmarks.speed.scaling: efficiency of strong and weak scaling, and the split of each rank's time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import Spread
from mpifed.core.typing import Array
from mpifed.report.palette import BLUE, GREEN, ORANGE, SKY, VERMILION
from mpifed.report.style import drawing

LOOKS = {"strong": (BLUE, "o"), "weak": (VERMILION, "s")}
SHARES = {"computing": (GREEN, ""), "waiting": (SKY, "////"), "MPI": (ORANGE, "....")}


class Point(NamedTuple):
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


def draw(found: Sequence[Point], splits: dict[int, Array], title: str, path: Path) -> bool:
    """Write the picture. Returns False if matplotlib is not installed."""
    try:
        import matplotlib.figure
    except ImportError:
        return False
    with drawing():
        page = matplotlib.figure.Figure(figsize=(7.2, 4.3), layout="constrained", dpi=150)
        axes = page.subplot_mosaic([["strong", "weak"], ["split", "split"]], height_ratios=[1.5, 1])
        for kind in LOOKS:
            curve(axes[kind], [point for point in found if point.kind == kind])
        key(axes["weak"], any(point.cores is not None for point in found))
        bars(axes["split"], splits)
        page.suptitle(title)
        page.savefig(path, dpi=150)
    return True


def curve(axis: Any, points: Sequence[Point]) -> None:
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


def key(axis: Any, shared: bool) -> None:
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
