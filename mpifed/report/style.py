"""The style of pictures: small, readable in print and without colours."""

import importlib
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from mpifed.core.errors import UserError, needed
from mpifed.core.files import replacing
from mpifed.report.palette import COLOURS

SINGLE, DOUBLE = 3.4, 7.0  # inches: a column and a page
WIDTHS = {"single": SINGLE, "double": DOUBLE}
NARROWEST, WIDEST = 2.0, 40.0  # a figure
HIGHEST = 4.0  # a panel that is wider grows no higher
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "oo")
TYPES = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}  # same input, same bytes
SIZE = 8  # points
LETTER = 0.064  # inches of a letter
HANDLE = 0.62  # inches of the line and marker before a label
LINE = 0.16  # inches of a line of text
USUAL = ["font.size", *(f"{part}size" for part in ("axes.label", "xtick.label", "ytick.label", "legend.font"))]
ABSENT = ("axes.spines.top", "axes.spines.right", "legend.frameon", "axes.formatter.useoffset")
RC: dict[str, Any] = {
    **dict.fromkeys([*USUAL, "legend.title_fontsize"], SIZE),
    **dict.fromkeys(("axes.titlesize", "figure.titlesize"), SIZE + 1),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("grid.linewidth", "hatch.linewidth"), 0.4),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    **dict.fromkeys(ABSENT, False),
    "grid.color": "#dddddd",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "savefig.dpi": 300,
    "figure.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "mpifed",
    "pdf.fonttype": 42,
}


class Wishes(TypedDict, total=False):
    """What a user may ask of any picture of curves."""

    log: str | None  # logarithmic axes: x, y, xy or none; None: y where its values are positive over two decades
    width: float | None  # inches
    title: str | None
    band: str | None  # none, sd or minmax; None: minmax up to three curves
    rename: Sequence[str]  # OLD=NEW, for names of methods, settings, columns and curves
    everything: bool  # show runs that did not finish too


@contextmanager
def framed(
    width: float,
    shape: tuple[int, int],
    labels: Sequence[str],
    looks: Sequence[dict[str, Any]],
    words: Sequence[str | None],
    below: int = 0,
) -> Iterator[tuple[Any, Any]]:
    """A figure and its panels (rows, columns), to draw on in this context, below heading and legend.

    The legend has curves of these ``looks`` with their ``labels``. ``below``: lines of text below the panels.
    """
    broken, across, deep = folded(labels, width)
    heading = headed(width, *words)
    with drawing() as matplotlib:
        lines = deep if len(broken) > 1 else 0
        figure, places = canvas(matplotlib, width, *shape, heading, lines + below)
        yield figure, places
        handles = [matplotlib.lines.Line2D([], [], **look) for look in looks]
        above(figure, handles, broken, across, heading)


@contextmanager
def drawing() -> Iterator[Any]:
    """matplotlib in the style of this file. Raises UserError where it is not installed."""
    matplotlib = needed("matplotlib", 'pictures need matplotlib: pip install "mpifed[plot]"')
    importlib.import_module("matplotlib.figure")
    # The defaults first: a user's matplotlibrc would else change pictures that are compared with those of others.
    with matplotlib.rc_context():
        settings: Any = matplotlib.rcParams
        matplotlib.rcdefaults()
        settings.update(RC)
        yield matplotlib


def inches(width: str | float | None, what: str) -> float | None:
    try:
        return None if width is None else float(WIDTHS.get(str(width), width))
    except (TypeError, ValueError):
        raise UserError(f"{what} {width} is wrong: it must be single, double or a number of inches") from None


def paper(width: float | None, usual: float) -> float:
    """A width in inches, by default ``usual``. UserError for one that does not fit on paper."""
    if width is not None and not NARROWEST <= width <= WIDEST:
        right = f"from {NARROWEST:g} to {WIDEST:g} inches, single ({SINGLE:g}) or double ({DOUBLE:g})"
        raise UserError(f"width = {width:g} is wrong: it must be {right}")
    return usual if width is None else width


def canvas(matplotlib: Any, width: float, rows: int, columns: int, heading: str, lines: int) -> tuple[Any, Any]:
    """A figure and its panels (rows, columns), 3/4 as high as wide, below a heading and a legend of ``lines``."""
    high = rows * 0.74 * min(width / columns, HIGHEST) + LINE * (lines + (heading.count("\n") + 1) * bool(heading))
    figure = matplotlib.figure.Figure(figsize=(width, high), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def fill(index: int) -> dict[str, Any]:
    return {"facecolor": COLOURS[index % len(COLOURS)], "edgecolor": "white", "hatch": HATCHES[index % len(HATCHES)]}


def folded(labels: Sequence[str], width: float) -> tuple[list[str], int, int]:
    """Labels broken into lines, and the columns and lines of a legend that is no wider than ``width``."""
    broken = [fold(label, width - HANDLE) for label in labels]
    for columns in range(len(broken), 0, -1):
        # matplotlib fills a legend column by column, and the first columns are longer: 5 labels in 3 are 2, 2 and 1.
        share, more = divmod(len(broken), columns)
        ends = [k * share + min(k, more) for k in range(columns + 1)]
        parts = [[line for label in broken[a:b] for line in label.split("\n")] for a, b in pairwise(ends)]
        if sum(max(map(len, part)) * LETTER + HANDLE for part in parts) <= width:
            break
    return broken, columns, max(map(len, parts))


def fold(words: str, width: float) -> str:
    """Text broken into lines of at most ``width`` inches, but not between a setting and its value."""
    words = text(words).replace(" = ", "\u00a0=\u00a0")
    return textwrap.fill(words, max(int(width / LETTER), 12), break_on_hyphens=False).replace("\u00a0", " ")


def headed(width: float, *words: str | None) -> str:
    """Title and note, each on its own lines."""
    return "\n".join(fold(word, width) for word in words if word)


def above(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int, heading: str) -> None:
    """Put heading and legend above the panels, where they hide nothing; a single curve needs no legend."""
    if len(handles) > 1:
        sizes = {"ncols": columns, "handlelength": 3.4, "columnspacing": 1.2}
        legend = figure.legend(handles, labels, loc="outside upper center", title=heading or None, **sizes)
        legend.get_title().set_multialignment("center")
    elif heading:
        figure.suptitle(heading)


def text(words: str) -> str:
    """Text without matplotlib's formulas: $ is a dollar sign."""
    return words.replace("$", r"\$")


def save(figure: Any, path: str | Path, force: bool = False) -> None:
    """Write a figure as PNG (300 dots per inch), PDF or SVG, by the extension of ``path``; letters stay text.

    UserError for another extension, for a file that exists unless ``force``, and where it cannot be written.
    """
    ending = kind(path)
    with drawing(), replacing(path, force) as part:
        figure.savefig(part, format=ending[1:], metadata=TYPES[ending])


def kind(path: str | Path, more: str = "") -> str:
    """The extension of a picture's name; UserError, which goes on with ``more``, for an unknown one."""
    ending = Path(path).suffix.lower()
    if ending not in TYPES:
        raise UserError(f"{path} does not name a picture: it must end in {', '.join(TYPES)}{more}")
    return ending
