"""How the programs of speed print: numbers with three digits, medians with their range, and tables, also as CSV."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GAP = 2  # blanks between columns
NONE = "–"  # a cell without a number


class Spread(NamedTuple):
    """Median and range over repetitions."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{figure(self.median)} ({figure(self.least)}–{figure(self.most)})"


def spread(values: Sequence[float] | np.ndarray) -> Spread:
    """Median and range of ``values``."""
    return Spread(float(np.median(values)), float(np.min(values)), float(np.max(values)))


def figure(value: float) -> str:
    """A number with three digits, without an exponent."""
    if not math.isfinite(value):
        return NONE
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if value else "0"


def best_and_median(seconds: Sequence[float]) -> str:
    """Milliseconds of the repetitions: the best and the (median)."""
    return f"{figure(1e3 * min(seconds))} ({figure(1e3 * float(np.median(seconds)))})"


def tiny(value: float) -> str:
    """A deviation, of which the exponent says all."""
    return f"{value:.1e}"


class Table:
    """A table that is printed line by line. ``file`` gets the same rows with all digits.

    ``columns``: name -> width of its longest cell, where that is wider than the name. A cell is a text, a number, a
    Spread, or None. In the file a Spread is three columns: name, name_least and name_most.
    """

    def __init__(self, columns: Mapping[str, int], file: Path | None = None) -> None:
        self.widths = [max(width, len(name)) + GAP for name, width in columns.items()]
        self.names = list(columns)
        self.file = file
        self.rows: list[Sequence[Any]] = []
        self.show(self.names)

    def row(self, *cells: Any) -> None:
        """Print a row, and write the file."""
        self.show([cell_text(cell) for cell in cells])
        self.rows.append(cells)
        if self.file is not None:
            head = [column for name, cell in zip(self.names, cells, strict=True) for column in in_file(name, cell)]
            write_csv(self.file, head, (flat(row) for row in self.rows))

    def show(self, words: Sequence[str]) -> None:
        print("".join(f"{word:<{width}}" for word, width in zip(words, self.widths, strict=True)).rstrip(), flush=True)


def cell_text(cell: Any) -> str:
    """What is printed of a cell."""
    if cell is None:
        return NONE
    return figure(cell) if isinstance(cell, float) else str(cell)


def in_file(name: str, cell: Any) -> list[str]:
    """The columns of a cell in the file."""
    word = name.replace(" : ", "_to_").replace(" ", "_")
    return [word, f"{word}_least", f"{word}_most"] if isinstance(cell, Spread) else [word]


def flat(cells: Sequence[Any]) -> list[Any]:
    """The numbers of a row."""
    return [number for cell in cells for number in (cell if isinstance(cell, Spread) else [cell])]


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(head)
        table.writerows(rows)


def told(folder: Path, tables: str, picture: str, drawn: bool) -> None:
    """Say what has been written, and why there is no picture where none was drawn."""
    missing = "the picture needs matplotlib: pip install matplotlib"
    print(f"written to {folder}: {tables}, {picture if drawn else missing}")
