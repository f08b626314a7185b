"""The layout of the summary: numbers as text, cells in aligned columns, sections with their names on the left."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.metrics import choose_unit

WIDTH = 100
MARGIN = 15  # characters on the left, for the name of a section
LONG = 42  # a cell of more characters has a separate line

Cell = tuple[str, str]


def format_number(value: float) -> str:
    return f"{float(f'{value:.4g}'):g}"


def format_decimals(values: Array) -> list[str]:
    """Return values with aligned decimal points: four significant digits in the largest, at most four decimals."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if np.all(values == np.floor(values)) or not largest < math.inf:
        return [f"{value:.0f}" for value in values]
    digits = min(4, max(0, 3 - math.floor(math.log10(largest))))
    return [f"{value:.{digits}f}" for value in values]


def format_bytes(size: float) -> str:
    """Return bytes as B, kB, MB …"""
    factor, name = choose_unit("byte", size)
    return f"{format_number(size / factor)} {name}"


def label_section(name: str, lines: list[str]) -> list[str]:
    """Return lines with the name of their section on the left."""
    return [(name if k == 0 else "").ljust(MARGIN) + line for k, line in enumerate(lines)]


def align_rows(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return rows as lines with their cells aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [gap.join(map(str.ljust, row, widths)).rstrip() for row in rows]


def flow_cells(cells: Sequence[Cell]) -> list[str]:
    """Return cells in as many aligned columns as fit, read downwards; long cells below."""
    width = WIDTH - MARGIN
    long = [cell for cell in cells if sum(map(len, cell)) > LONG]
    short = [cell for cell in cells if sum(map(len, cell)) <= LONG]
    lines: list[str] = []
    for number_of in (4, 3, 2, 1):
        height = math.ceil(len(short) / number_of)
        blocks = [short[k : k + height] for k in range(0, len(short), max(1, height))]
        sides = [(max(len(key) for key, _ in block), max(len(value) for _, value in block)) for block in blocks]
        if sum(a + b + 2 for a, b in sides) + 3 * (len(sides) - 1) <= width:
            texts = [
                [f"{key:{a}}  {value:{b}}" for key, value in block] for block, (a, b) in zip(blocks, sides, strict=True)
            ]
            lines = ["   ".join(block[k] for block in texts if k < len(block)).rstrip() for k in range(height)]
            break
    for key, value in long:
        lines += textwrap.wrap(f"{key}  {value}", width, subsequent_indent="    ")
    return lines
