"""Numbers and tables as text: with their spread for a terminal, Markdown, LaTeX and CSV, and the lines of a summary."""

import csv
import io
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from mpifed.core.errors import raise_unknown
from mpifed.core.typing import Array

CellText = TypeVar("CellText")
ABSENT = "–"
DIGITS = 6  # maximum significant digits of a mean
SMALL, LARGE = 1e-4, 1e6  # other numbers have an exponent
TINY = 1e-300  # smaller numbers are zero
EXACT = 1e15  # whole numbers below are written in full
WIDTH = 100  # of a summary
MARGIN = 15  # characters on the left, for the name of a section
LONG = 42  # a cell of more characters has a separate line
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    ABSENT: "--",
} | {sign: "\\" + sign for sign in "&%$#_{}"}

Cell = tuple[str, str]


class Number(NamedTuple):
    """A mean, its standard deviation (nan: there is none) and whether it is the best of its column."""

    mean: float
    sd: float = math.nan
    best: bool = False


class ReportTable(NamedTuple):
    """The heads, in words and in LaTeX, and the rows; numbers are divided by their column's entry in ``factors``."""

    heads: list[tuple[str, str]]
    names: list[str]  # the heads of CSV, which has raw numbers
    rows: list[list[str | Number]]
    factors: list[float]

    def add(self, head: tuple[str, str], name: str, cells: Iterable[str | Number], factor: float = 1.0) -> None:
        self.heads.append(head)
        self.names.append(name)
        self.factors.append(factor)
        for row, cell in zip(self.rows, cells, strict=True):
            row.append(cell)

    def cells(
        self, text: Callable[[str], CellText], number: Callable[[Number, float], CellText]
    ) -> list[list[CellText]]:
        """Apply ``text`` or ``number`` to every cell, numbers with the factor of their column."""

        def convert(cell: str | Number, factor: float) -> CellText:
            return text(cell) if isinstance(cell, str) else number(cell, factor)

        return [[convert(cell, factor) for cell, factor in zip(row, self.factors, strict=True)] for row in self.rows]


def digits(mean: float, sd: float) -> tuple[str, str, int]:
    """Return mean, standard deviation ("" if none) and the power of ten that both are to be multiplied with.

    The deviation has two significant digits, and the mean as many decimals; without a deviation it has four digits.
    """
    # One power for both, that of the larger one: 1.2e-8 ± 3e-10 becomes (1.20 ± 0.03)e-8.
    size = max(abs(mean), 0.0 if math.isnan(sd) else sd)
    if math.isinf(size):
        return f"{mean:.4g}", "" if math.isnan(sd) else f"{sd:.2g}", 0
    exact = math.isnan(sd) or sd <= TINY
    integer = exact and mean == round(mean) and size < EXACT
    power = 0 if integer or size <= TINY or SMALL <= size < LARGE else math.floor(math.log10(size))
    unit = 10.0**power
    if exact:
        return f"{mean:.0f}" if integer else f"{mean / unit:.4g}", "" if math.isnan(sd) else "0", power
    limit = DIGITS - 1 - math.floor(math.log10(size / unit))
    decimals = max(0, min(1 - math.floor(math.log10(sd / unit)), limit))
    spread = f"{sd / unit:.{decimals}f}"
    return f"{mean / unit:.{decimals}f}", spread if float(spread) else f"{sd / unit:.0e}", power


def rounded_mean(number: Number, factor: float = 1.0) -> float:
    """Return the mean, rounded as in the table."""
    mean, _, power = digits(number.mean / factor, number.sd / factor)
    return float(mean) * 10.0**power


def format_cell(number: Number, factor: float) -> str:
    """Return a number as 1.25 ± 0.03 or (1.25 ± 0.03)e-8."""
    if math.isnan(number.mean):
        return ABSENT
    mean, sd, power = digits(number.mean / factor, number.sd / factor)
    if not power:
        return f"{mean} ± {sd}" if sd else mean
    return f"({mean} ± {sd})e{power}" if sd else f"{mean}e{power}"


def latex_number(number: Number, factor: float) -> str:
    if math.isnan(number.mean):
        return "--"
    mean, sd, power = digits(number.mean / factor, number.sd / factor)
    text = rf"{mean} \pm {sd}" if sd else mean
    if power:
        text = (rf"({text})" if sd else text) + rf" \times 10^{{{power}}}"
    return rf"{{\boldmath${text}$}}" if number.best else f"${text}$"


def terminal(table: ReportTable, bold: bool = False) -> str:
    """Return aligned columns, with the best numbers in bold if the terminal can show that."""
    lines = [[words for words, _ in table.heads], *table.cells(str, format_cell)]
    for k, right in enumerate(numeric_columns(table)):
        width = max(len(line[k]) for line in lines)
        for line in lines:
            line[k] = line[k].rjust(width) if right else line[k].ljust(width)
    # After aligning the cells, because the codes for bold have a length but no width.
    best = table.cells(lambda text: False, lambda number, factor: number.best)
    for line, row in zip(lines[1:] if bold else (), best, strict=False):
        for k in np.flatnonzero(row).tolist():
            line[k] = f"\033[1m{line[k]}\033[0m"
    return "\n".join("  ".join(line).rstrip() for line in lines)


def markdown(table: ReportTable) -> str:
    def text(words: str) -> str:
        return "".join("\\" + sign if sign in r"\|*_<`[" else sign for sign in words)

    def number(value: Number, factor: float) -> str:
        return f"**{format_cell(value, factor)}**" if value.best else format_cell(value, factor)

    heads = [text(words) for words, _ in table.heads]
    sides = ["--:" if right else ":--" for right in numeric_columns(table)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, sides, *table.cells(text, number)])


def latex(table: ReportTable) -> str:
    """Return a tabular for the package booktabs."""
    head, *body = (
        " & ".join(line) + r" \\"
        for line in [[words for _, words in table.heads], *table.cells(escape_latex, latex_number)]
    )
    columns = "".join("r" if right else "l" for right in numeric_columns(table))
    begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}"])


def comma_separated(table: ReportTable) -> str:
    """Return unrounded numbers, mean and standard deviation in separate columns; an empty cell without a number."""
    rows = table.cells(
        lambda text: ["" if text == ABSENT else text],
        lambda number, factor: [unrounded(number.mean), unrounded(number.sd)],
    )
    heads = [[name, f"{name}_sd"][: len(parts)] for name, parts in zip(table.names, rows[0], strict=True)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in (heads, *rows):
        writer.writerow(itertools.chain(*line))
    return out.getvalue().rstrip("\n")


def numeric_columns(table: ReportTable) -> list[bool]:
    def number_like(text: str) -> bool:
        return text == ABSENT or text.replace(".", "", 1).replace("-", "").replace("e", "", 1).isdigit()

    flags = table.cells(number_like, lambda number, factor: True)
    return [all(column) for column in zip(*flags, strict=True)]


def escape_latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)


FORMATS: dict[str, Callable[[ReportTable], str]] = {
    "terminal": terminal,
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}


def format_table(table: ReportTable, form: str, bold: bool) -> str:
    """Return the table in one of FORMATS; ``bold``: a terminal can show bold text. UserError for another form."""
    if form not in FORMATS:
        raise_unknown("format", form, FORMATS)
    return terminal(table, bold) if form == "terminal" else FORMATS[form](table)


def unrounded(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if abs(value) < EXACT and value == round(value) else repr(value)


def choose_unit(unit: str, largest: float) -> tuple[float, str]:
    """Return a divisor for values up to ``largest``, and their unit then: 1000 and kB for bytes up to 999,950."""
    if unit != "byte":
        return 1.0, "" if unit == "1" else unit
    power = 0
    while largest / 1000.0**power >= 999.95 and power < len(BYTES) - 1:
        power += 1
    return 1000.0**power, BYTES[power]


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
