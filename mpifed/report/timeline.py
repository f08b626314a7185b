"""The timeline of a run: where its time went, by round and by rank, and who was there over simulated time."""

from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.curves import require_drawable
from mpifed.report.metrics import metric_title
from mpifed.report.palette import COLOURS
from mpifed.report.settings import describe_ending
from mpifed.report.style import DOUBLE, SINGLE, bar_style, check_width, figure_with_legend
from mpifed.results.result import RunRecord

BARS = 50  # maximum bars for rounds
FEWEST = 4  # fewer bars leave room at both sides
OUTLINED = 50  # maximum bars with an outline
MILLISECONDS = 0.1  # shorter times are shown in milliseconds
PARTS = {
    "compute": ("compute_seconds", "compute_seconds"),
    "server": ("server_seconds", ""),
    "communication": ("comm_seconds", "comm_seconds"),
    "waiting": ("", "wait_seconds"),
    "evaluation": ("evaluate_seconds", "evaluate_seconds"),
    "writing": ("", "io_seconds"),
}  # part -> its columns in /rounds and in /ranks


def plot_timeline(result: RunRecord, width: float | None = None, title: str | None = None) -> Any:
    """Draw bars of seconds for the rounds and, beside them, for the ranks, split by activity.

    A round is split into the computation of its slowest rank, that of the server, communication between ranks and
    evaluation. Round 0, before any work, is left out. With many rounds a bar is the mean over several, and the axis
    says so. A rank has its totals over the whole run, because a result file does not record ranks round by round; the
    server's computation is added to rank 0. UserError where no round was recorded.
    """
    rounds, ranks = seconds(result)
    size, count = (len(next(iter(parts.values()), ())) for parts in (rounds, ranks))
    shown = [part for part in PARTS if part in rounds or part in ranks]
    width = check_width(width, DOUBLE)
    panels = 2 if ranks else 1
    rows = panels if width <= 1.5 * SINGLE else 1
    looks = [bar_style(list(PARTS).index(part)) for part in shown]
    words = (title, describe_ending(result))
    with figure_with_legend(width, (rows, panels // rows), shown, looks, words) as (figure, axes):
        from matplotlib.ticker import MaxNLocator

        each = -(-size // BARS)
        starts = np.arange(0, size, each)
        counts = np.minimum(each, size - starts)
        means = {part: np.add.reduceat(values, starts) / counts for part, values in rounds.items()}
        draw_bars(axes.flat[0], starts + 1 + (counts - 1) / 2, means, 0.9 * counts, "per round")
        axes.flat[0].set_xlabel("round" if each == 1 else f"round (bars: means of {each})")
        if ranks:
            widths = np.full(count, 0.8 if count <= OUTLINED else 1.0)
            draw_bars(axes.flat[1], np.arange(count), ranks, widths, "in total")
            axes.flat[1].set_xlabel("rank")
        for axis, first, last in zip(axes.flat, (1, 0), (size, count - 1), strict=False):
            ticks = MaxNLocator(8, integer=True, min_n_ticks=1).tick_values(first, last)
            axis.set_xticks([tick for tick in ticks if first <= tick <= last] or [first])
            axis.grid(False, axis="x")
    return figure


def plot_availability(result: RunRecord, width: float | None = None, title: str | None = None) -> Any:
    """Draw the shares of the clients that were there, were selected and took part, over simulated time.

    Rounds that take no simulated time are drawn by their numbers. UserError for a run without system.availability.
    """
    rounds = result.rounds
    drawable = "available" in rounds and result.cr > 0
    require_drawable(drawable, f"{result.path or 'the result'} has no round with system.availability")
    counts = {name: rounds[of] for name, of in {"there": "available", "selected": "selected"}.items() if of in rounds}
    counts["took part"] = np.array([len(result.selected(round)) for round in range(result.cr + 1)])
    by = "simulated_seconds" if rounds["simulated_seconds"][-1] else "round"
    x = rounds["simulated_seconds"] if by != "round" else np.arange(result.cr + 1)
    looks = [{"color": COLOURS[k], "linestyle": ("-", "--", ":")[k]} for k in range(len(counts))]
    words = (title, describe_ending(result))
    with figure_with_legend(check_width(width, SINGLE), (1, 1), list(counts), looks, words) as (figure, axes):
        axis = axes.flat[0]
        for values, look in zip(counts.values(), looks, strict=True):
            # a round lasts from the end of the one before to its own
            axis.step(x, np.append(values[1:2], values[1:]) / result.m, where="pre", **look)
        axis.set_xlabel(metric_title(by, "s" if by != "round" else ""))
        axis.set_ylabel("share of clients")
        axis.set_ylim(bottom=0)
    return figure


def seconds(result: RunRecord) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the seconds of each activity, by round (without round 0) and by rank. UserError without any round."""
    columns = {part: result.rounds[of][1:] for part, (of, _) in PARTS.items() if of in result.rounds}
    rounds = {part: np.nan_to_num(values, posinf=0, neginf=0) for part, values in columns.items()}
    some = len(next(iter(rounds.values()), ())) > 0
    require_drawable(some, f"{result.path or 'the result'} has no times of a round")
    ranks = {part: np.array(result.ranks[of], float) for part, (_, of) in PARTS.items() if of in result.ranks}
    if "compute" in ranks and "server" in rounds:
        ranks["server"] = np.zeros(len(ranks["compute"]))
        ranks["server"][:1] = np.nansum(result.rounds["server_seconds"])
    return rounds, ranks


def draw_bars(axis: Any, x: Array, parts: dict[str, Array], widths: Array, what: str) -> None:
    """Draw bars at ``x``: the parts in their order on top of one another."""
    below = np.zeros(len(x))
    top = sum(parts.values(), below).max()
    factor, name = (1e3, "ms") if top < MILLISECONDS else (1.0, "s")
    line = 0.3 if len(x) <= OUTLINED else 0
    for index, part in enumerate(PARTS):
        if part in parts:
            axis.bar(x, factor * parts[part], widths, factor * below, linewidth=line, **bar_style(index))
            below = below + parts[part]
    if len(x) < FEWEST:
        axis.set_xlim(x.mean() - FEWEST / 2, x.mean() + FEWEST / 2)
    axis.set_ylabel(f"{name} {what}")
