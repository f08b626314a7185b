"""Tables of numbers with their spread, for a terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

ABSENT = "–"
DIGITS = 6  # most significant digits of a mean
SMALL, LARGE = 1e-4, 1e6  # beyond them numbers have an exponent
TINY, EXACT = 1e-300, 1e15  # smaller numbers are zero; whole numbers below are written in full
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    ABSENT: "--",
} | {sign: "\\" + sign for sign in "&%$#_{}"}


class Number(NamedTuple):
    """Mean, standard deviation (nan: there is none) and whether it is the best of its column."""

    mean: float
    sd: float = math.nan
    best: bool = False


class Table(NamedTuple):
    """Heads, in words and in LaTeX, and rows; numbers are divided by their column's entry in ``factors``."""

    heads: list[tuple[str, str]]
    names: list[str]  # the heads of CSV, which has raw numbers
    rows: list[list[str | Number]]
    factors: list[float]


def digits(mean: float, sd: float) -> tuple[str, str, int]:
    """Mean, standard deviation ("" if none) and the power of ten that both are to be multiplied with.

    The deviation has two significant digits, and the mean as many decimals; without a deviation it has four digits.
    """
    size = max(abs(mean), 0.0 if math.isnan(sd) else sd)
    exact = math.isnan(sd) or sd <= TINY
    whole = exact and mean == round(mean) and size < EXACT
    power = 0 if whole or size <= TINY or SMALL <= size < LARGE else math.floor(math.log10(size))
    if exact:
        return f"{mean:.0f}" if whole else f"{mean / 10.0**power:.4g}", "" if math.isnan(sd) else "0", power
    mean, sd, size = mean / 10.0**power, sd / 10.0**power, size / 10.0**power
    most = DIGITS - 1 - math.floor(math.log10(size))
    decimals = max(0, min(1 - math.floor(math.log10(sd)), most))
    spread = f"{sd:.{decimals}f}"
    return f"{mean:.{decimals}f}", spread if float(spread) else f"{sd:.0e}", power


def shown(number: Number, factor: float = 1.0) -> float:
    """The mean, rounded as in the table."""
    mean, _, power = digits(number.mean / factor, number.sd / factor)
    return float(mean) * 10.0**power


def plain(number: Number, factor: float) -> str:
    """A number as 1.25 ± 0.03 or (1.25 ± 0.03)e-8."""
    if math.isnan(number.mean):
        return ABSENT
    mean, sd, power = digits(number.mean / factor, number.sd / factor)
    text = f"{mean} ± {sd}" if sd else mean
    return text if not power else f"({text})e{power}" if sd else f"{text}e{power}"


def formula(number: Number, factor: float) -> str:
    """A number in LaTeX."""
    if math.isnan(number.mean):
        return "--"
    mean, sd, power = digits(number.mean / factor, number.sd / factor)
    text = rf"{mean} \pm {sd}" if sd else mean
    if power:
        text = (rf"({text})" if sd else text) + rf" \times 10^{{{power}}}"
    return rf"{{\boldmath${text}$}}" if number.best else f"${text}$"


def terminal(table: Table, bold: bool = False) -> str:
    """Aligned columns; the best numbers in bold if the terminal can show that."""
    cells = [
        [heading for heading, _ in table.heads],
        *(
            [
                cell if isinstance(cell, str) else plain(cell, factor)
                for cell, factor in zip(row, table.factors, strict=True)
            ]
            for row in table.rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = numeric(table)
    lines = [
        "  ".join(pad(cell, width, flush) for cell, width, flush in zip(line, widths, right, strict=True))
        for line in cells
    ]
    if bold:
        for index, row in enumerate(table.rows, 1):
            marked = [isinstance(cell, Number) and cell.best for cell in row]
            padded = (pad(*each) for each in zip(cells[index], widths, right, strict=True))
            lines[index] = "  ".join(
                f"\033[1m{cell}\033[0m" if best else cell for cell, best in zip(padded, marked, strict=True)
            )
    return "\n".join(line.rstrip() for line in lines)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def cell(value: str | Number, factor: float) -> str:
        if isinstance(value, str):
            return "".join("\\" + sign if sign in r"\|*_<`[" else sign for sign in value)
        return f"**{plain(value, factor)}**" if value.best else plain(value, factor)

    return "\n".join(
        [
            line([cell(heading, 1) for heading, _ in table.heads]),
            line(["--:" if right else ":--" for right in numeric(table)]),
            *(line([cell(*each) for each in zip(row, table.factors, strict=True)]) for row in table.rows),
        ]
    )


def latex(table: Table) -> str:
    """A tabular for the package booktabs."""
    rows = [
        [
            escaped(cell) if isinstance(cell, str) else formula(cell, factor)
            for cell, factor in zip(row, table.factors, strict=True)
        ]
        for row in table.rows
    ]
    body = [" & ".join(line) + r" \\" for line in ([heading for _, heading in table.heads], *rows)]
    columns = "".join("r" if right else "l" for right in numeric(table))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def comma_separated(table: Table) -> str:
    """Unrounded numbers, mean and standard deviation in separate columns; an empty cell where there is no number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    first = table.rows[0]
    writer.writerow(
        [
            part
            for name, cell in zip(table.names, first, strict=True)
            for part in ([name] if isinstance(cell, str) else [name, f"{name}_sd"])
        ]
    )
    for row in table.rows:
        writer.writerow(
            [
                part
                for cell in row
                for part in (
                    ["" if cell == ABSENT else cell] if isinstance(cell, str) else [raw(cell.mean), raw(cell.sd)]
                )
            ]
        )
    return out.getvalue().rstrip("\n")


def numeric(table: Table) -> list[bool]:
    """Which columns are aligned to the right: those of numbers."""
    return [
        all(isinstance(cell, Number) or cell == ABSENT or number_like(cell) for cell in column)
        for column in zip(*table.rows, strict=True)
    ]


def number_like(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "").replace("e", "", 1).isdigit()


def pad(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def escaped(text: str) -> str:
    """Text with the signs escaped that LaTeX would interpret."""
    return "".join(LATEX.get(sign, sign) for sign in text)


def raw(value: float) -> str:
    """A number with all its digits, "" for nan."""
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if abs(value) < EXACT and value == round(value) else repr(value)
