"""How pictures look: small, readable in print, and by those who do not see colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.files import replacing

SINGLE, DOUBLE = 3.4, 7.0  # inches: a column and a page
WIDTHS = {"single": SINGLE, "double": DOUBLE}
NARROWEST, WIDEST, HIGHEST = 2.0, 40.0, 4.0  # a panel that is wider than HIGHEST grows no higher
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")  # Okabe and Ito, without yellow
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "oo")
TYPES = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}  # same input, same bytes
SIZE = 8  # points
LETTER, HANDLE = 0.064, 0.62  # inches of a letter and of what stands before a label
LINE = 0.16  # inches of a line of text
RC: dict[str, Any] = {
    "font.size": SIZE,
    "axes.titlesize": SIZE + 1,
    "axes.labelsize": SIZE,
    "xtick.labelsize": SIZE,
    "ytick.labelsize": SIZE,
    "legend.fontsize": SIZE,
    "legend.title_fontsize": SIZE,
    "figure.titlesize": SIZE + 1,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.4,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "figure.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "mpifed",
    "pdf.fonttype": 42,
    "axes.formatter.useoffset": False,
}


@contextmanager
def drawing() -> Iterator[Any]:
    """matplotlib in the style of this file. Raises UserError where it is not installed."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise UserError('pictures need matplotlib: pip install "mpifed[plot]"') from None
    with matplotlib.rc_context():
        settings: Any = matplotlib.rcParams
        matplotlib.rcdefaults()
        settings.update(RC)
        yield matplotlib


def paper(width: float | None, usual: float) -> float:
    """Inches, ``usual`` where nobody chose. Raises UserError for a width that no paper has."""
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise UserError(
            f"width = {width:g} is wrong: it must be from {NARROWEST:g} to {WIDEST:g} inches, single "
            f"({SINGLE:g}) or double ({DOUBLE:g})"
        )
    return usual if width is None else width


def canvas(matplotlib: Any, width: float, rows: int, columns: int, heading: str, lines: int) -> tuple[Any, Any]:
    """A figure and its panels (rows, columns), three quarters as high as wide, below a heading and a legend of ``lines``."""
    high = rows * 0.74 * min(width / columns, HIGHEST) + LINE * (lines + (heading.count("\n") + 1) * bool(heading))
    figure = matplotlib.figure.Figure(figsize=(width, high), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def look(place: int) -> dict[str, Any]:
    """Colour, marker and line of the curve in this place: each has its own period, so that 280 curves differ."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    }


def fill(place: int) -> dict[str, Any]:
    """Colour and hatching of an area."""
    return {"facecolor": COLOURS[place % len(COLOURS)], "edgecolor": "white", "hatch": HATCHES[place % len(HATCHES)]}


def folded(labels: Sequence[str], width: float) -> tuple[list[str], int, int]:
    """Labels broken to lines that fit, the columns of a legend that is no wider than ``width``, and the lines it has."""
    broken = [fold(label, width - HANDLE) for label in labels]
    for columns in range(len(broken), 0, -1):
        share, more = divmod(len(broken), columns)  # a legend is filled column by column, the first are the longer
        ends = [place * share + min(place, more) for place in range(columns + 1)]
        parts = [[line for label in broken[a:b] for line in label.split("\n")] for a, b in pairwise(ends)]
        if sum(max(map(len, part)) * LETTER + HANDLE for part in parts) <= width:
            break
    return broken, columns, max(map(len, parts))


def fold(words: str, width: float) -> str:
    """Text in lines of at most so many inches."""
    return textwrap.fill(text(words), max(int(width / LETTER), 12), break_on_hyphens=False)


def headed(width: float, *words: str | None) -> str:
    """Title and note, each on lines of its own."""
    return "\n".join(fold(word, width) for word in words if word)


def above(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int, heading: str) -> None:
    """Heading and legend above the panels, where they hide nothing; a single curve needs no legend."""
    if len(handles) > 1:
        made = figure.legend(
            list(handles),
            list(labels),
            loc="outside upper center",
            ncols=columns,
            title=heading or None,
            handlelength=3.4,
            columnspacing=1.2,
        )
        made.get_title().set_multialignment("center")
    elif heading:
        figure.suptitle(heading)


def text(words: str) -> str:
    """Text as it is: no formulas of matplotlib in it."""
    return words.replace("$", r"\$")


def save(figure: Any, path: str | Path, force: bool = False) -> None:
    """Write a figure as PNG (200 dots an inch), PDF or SVG, as the name ends; fonts stay text.

    Raises UserError for another ending, for a file that exists unless ``force``, and where it cannot be written.
    """
    ending = kind(path)
    with drawing(), replacing(path, force) as place:
        figure.savefig(place, format=ending[1:], metadata=TYPES[ending])


def kind(path: str | Path) -> str:
    """The ending of a picture's name. Raises UserError for one that names no kind of picture."""
    ending = Path(path).suffix.lower()
    if ending not in TYPES:
        raise UserError(f"{path} is no name of a picture: it must end in {', '.join(TYPES)}")
    return ending
