"""The style of pictures: small, and readable in print and without colours."""

import importlib
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from mpifed.core.errors import UserError, import_required
from mpifed.core.files import replace_file
from mpifed.report.palette import COLOURS

SINGLE, DOUBLE = 3.4, 7.0  # inches: a column and a page
WIDTHS = {"single": SINGLE, "double": DOUBLE}
NARROWEST, WIDEST = 2.0, 40.0  # inches of a figure
HIGHEST = 4.0  # maximum height of a panel, however wide
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


class PictureOptions(TypedDict, total=False):
    """A user's options for any picture of curves."""

    log: str | None  # logarithmic axes: x, y, xy or none; None: y where its values are positive over two decades
    width: float | None  # inches
    title: str | None
    band: str | None  # none, sd or minmax; None: minmax up to three curves
    rename: Sequence[str]  # OLD=NEW, for names of methods, settings, columns and curves
    everything: bool  # show unfinished runs too


@contextmanager
def figure_with_legend(
    width: float,
    shape: tuple[int, int],
    labels: Sequence[str],
    looks: Sequence[dict[str, Any]],
    words: Sequence[str | None],
    below: int = 0,
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its panels (rows, columns), to draw on in this context, and add heading and legend.

    The legend shows curves or bars of these ``looks`` with their ``labels``. ``below``: lines of text below the panels.
    """
    broken, across, deep = fold_legend(labels, width)
    heading = make_heading(width, *words)
    with matplotlib_style() as matplotlib:
        lines = deep if len(broken) > 1 else 0
        figure, panels = make_canvas(matplotlib, width, *shape, heading, lines + below)
        yield figure, panels
        bar = matplotlib.patches.Patch
        line = matplotlib.lines.Line2D
        handles = [bar(**look) if "hatch" in look else line([], [], **look) for look in looks]
        add_legend(figure, handles, broken, across, heading)


@contextmanager
def matplotlib_style() -> Iterator[Any]:
    """Yield matplotlib in the style of this file. UserError where it is not installed."""
    matplotlib = import_required("matplotlib", 'pictures need matplotlib: pip install "mpifed[plot]"')
    importlib.import_module("matplotlib.figure")
    # The defaults first: a user's matplotlibrc would change pictures, so that they differ from those of others.
    with matplotlib.rc_context():
        settings: Any = matplotlib.rcParams
        matplotlib.rcdefaults()
        settings.update(RC)
        yield matplotlib


def parse_width(width: str | float | None, what: str) -> float | None:
    try:
        return None if width is None else float(WIDTHS.get(str(width), width))
    except (TypeError, ValueError):
        raise UserError(f"{what} {width} is wrong: it must be single, double or a number of inches") from None


def check_width(width: float | None, default: float) -> float:
    """Return a width in inches, or ``default``. UserError for one that does not fit on paper."""
    if width is not None and not NARROWEST <= width <= WIDEST:
        right = f"from {NARROWEST:g} to {WIDEST:g} inches, single ({SINGLE:g}) or double ({DOUBLE:g})"
        raise UserError(f"width = {width:g} is wrong: it must be {right}")
    return default if width is None else width


def make_canvas(matplotlib: Any, width: float, rows: int, columns: int, heading: str, lines: int) -> tuple[Any, Any]:
    """Return a figure and its panels (rows, columns), 3/4 as high as wide, below a heading and ``lines`` of legend."""
    height = rows * 0.74 * min(width / columns, HIGHEST) + LINE * (lines + (heading.count("\n") + 1) * bool(heading))
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def bar_style(index: int) -> dict[str, Any]:
    return {"facecolor": COLOURS[index % len(COLOURS)], "edgecolor": "white", "hatch": HATCHES[index % len(HATCHES)]}


def fold_legend(labels: Sequence[str], width: float) -> tuple[list[str], int, int]:
    """Return labels broken into lines, and the columns and lines of a legend that is no wider than ``width``."""
    broken = [fold_text(label, width - HANDLE) for label in labels]
    for columns in range(len(broken), 0, -1):
        # matplotlib fills a legend column by column, and the first columns are longer: 5 labels in 3 are 2, 2 and 1.
        each, rest = divmod(len(broken), columns)
        ends = [k * each + min(k, rest) for k in range(columns + 1)]
        columns_of_lines = [[line for label in broken[a:b] for line in label.split("\n")] for a, b in pairwise(ends)]
        if sum(max(map(len, part)) * LETTER + HANDLE for part in columns_of_lines) <= width:
            break
    return broken, columns, max(map(len, columns_of_lines))


def fold_text(words: str, width: float) -> str:
    """Break text into lines of at most ``width`` inches, but not between a setting and its value."""
    words = escape_dollars(words).replace(" = ", "\u00a0=\u00a0")
    return textwrap.fill(words, max(int(width / LETTER), 12), break_on_hyphens=False).replace("\u00a0", " ")


def make_heading(width: float, *words: str | None) -> str:
    """Return title and note, each on separate lines."""
    return "\n".join(fold_text(word, width) for word in words if word)


def add_legend(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int, heading: str) -> None:
    """Add heading and legend above the panels, where they hide nothing; a single curve needs no legend."""
    if len(handles) > 1:
        sizes = {"ncols": columns, "handlelength": 3.4, "columnspacing": 1.2}
        legend = figure.legend(handles, labels, loc="outside upper center", title=heading or None, **sizes)
        legend.get_title().set_multialignment("center")
    elif heading:
        figure.suptitle(heading)


def escape_dollars(words: str) -> str:
    """Return text in which $ is a dollar sign for matplotlib, not the beginning of a formula."""
    return words.replace("$", r"\$")


def save(figure: Any, path: str | Path, force: bool = False) -> None:
    """Write a figure as PNG (300 dots per inch), PDF or SVG, by the extension of ``path``; letters stay text.

    UserError for another extension, for a file that exists unless ``force``, and where it cannot be written.
    """
    ending = picture_extension(path)
    with matplotlib_style(), replace_file(path, force) as part:
        figure.savefig(part, format=ending[1:], metadata=TYPES[ending])


def picture_extension(path: str | Path, more: str = "") -> str:
    """Return the extension of a picture's name; UserError, whose text continues with ``more``, for an unknown one."""
    ending = Path(path).suffix.lower()
    if ending not in TYPES:
        raise UserError(f"{path} does not name a picture: it must end in {', '.join(TYPES)}{more}")
    return ending
