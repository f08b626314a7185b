"""`mpifed show`: a result on one screen."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.toml import flat, toml_value
from mpifed.core.typing import Array
from mpifed.report import memory
from mpifed.report.metrics import column, scale
from mpifed.results.columns import RANKS, Column
from mpifed.results.result import Result

WIDTH, HEIGHT = 100, 40
MARGIN = 15  # characters on the left, for the name of a part
LONG = 42  # a cell of more characters has a line of its own
LISTED = 16  # most ranks that have a row each

Cell = tuple[str, str]


def show(result: Result) -> str:
    """Configuration, outcome, communication, time and ranks of a run, in 40 lines of 100 characters."""
    cells = {
        "configuration": list(overrides(result.config).items()),
        "outcome": outcome(result),
        "communication": communication(result),
        "time (s)": times(result),
    }
    upper = [title(result), *(part(name, columns(own)) for name, own in cells.items())]
    text = ""
    for listed, gap in ((LISTED, "\n\n"), (LISTED, "\n"), (1, "\n\n"), (1, "\n")):
        parts = [*upper, part("ranks", ranks(result, listed))]
        text = gap.join("\n".join(lines) for lines in parts if lines)
        if text.count("\n") < HEIGHT:
            break
    return text


def title(result: Result) -> list[str]:
    """Method, problem, data and sizes of a run, and how it ended."""
    config = result.config
    name, problem, data = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    size = [count(result.m, "client")] + ([count(result.x.size, "parameter")] if result.x is not None else [])
    status = {"running": "running, or killed"}.get(result.status, result.status)
    reason = f" ({result.stop_reason})" if result.stop_reason else ""
    size.append(count(int(result.attrs.get("ranks", 1)), "rank"))
    lines = (
        f"{name} on {problem} / {data}: {', '.join(size)} · mpifed {result.attrs.get('mpifed_version', '?')}",
        f"{status}{reason} after {count(result.cr, 'round')} · started {result.attrs.get('started', '?')}",
    )
    return [textwrap.shorten(line, WIDTH, placeholder=" …") for line in lines]


def overrides(table: dict[str, Any]) -> dict[str, str]:
    """A configuration as command-line overrides spell it: ``algorithm`` for ``algorithm.name``."""
    plain = {key.removesuffix(".name"): value for key, value in flat(table).items()}
    return {key: value if is_word(value) else short(value) for key, value in plain.items()}


def is_word(value: Any) -> bool:
    """Whether a value can be shown without quotes."""
    return isinstance(value, str) and value != "" and " " not in value


def short(value: Any) -> str:
    """A value as TOML has it, 1e+12 for 1000000000000.0."""
    text = f"{value:e}".replace(".000000", "") if isinstance(value, float) else ""
    return text if text and len(text) < len(toml_value(value)) and float(text) == value else toml_value(value)


def recorded(result: Result, part: str) -> dict[str, Column]:
    """The columns of a result that belong to a part of the summary."""
    found = {name: column(name) for name in result.rounds if name != "round" and len(result.rounds[name])}
    return {name: meaning for name, meaning in found.items() if meaning.part == part}


def outcome(result: Result) -> list[Cell]:
    """First and last value of every evaluated column."""
    cells = []
    for name, meaning in recorded(result, "outcome").items():
        values = result.rounds[name]
        values = values[np.isfinite(values)]
        if len(values):
            first, last = number(values[0]), number(values[-1])
            cells.append((meaning.symbol or name, last if first == last else f"{first} → {last}"))
    return cells


def communication(result: Result) -> list[Cell]:
    """What travelled between server and clients: counts, then bytes."""
    counts, bytes_ = [], []
    for name, meaning in recorded(result, "communication").items():
        values = result.rounds[name]
        total = values.sum() if meaning.span == "round" else values[-1]
        if meaning.unit == "byte":
            bytes_.append((meaning.symbol or name, f"{amount(total)} ({total:,.0f})"))
        else:
            counts.append((meaning.symbol or name, f"{total:,.0f}"))
    return counts + bytes_


def times(result: Result) -> list[Cell]:
    """Where the time went, in seconds over all rounds; LCT is the mean of a round."""
    cells = [("TCT", number(result.tct)), ("LCT, per round", number(result.lct))]
    columns = recorded(result, "time")
    if "simulated_seconds" in columns:
        cells.append(("simulated", number(result.rounds["simulated_seconds"][-1])))
    rounds = {name: meaning.symbol for name, meaning in columns.items() if meaning.span == "round"}
    return cells + [(symbol, number(np.nansum(result.rounds[name]))) for name, symbol in rounds.items()]


def ranks(result: Result, listed: int) -> list[str]:
    """One row per rank, or minimum, median and maximum of more than ``listed`` ranks."""
    size = len(result.ranks.get("rank", ()))
    if not size:
        return []
    hosts = [str(host).partition(".")[0] for host in result.ranks.get("hostname", [""] * size)]
    rows, few = [str(rank) for rank in range(size)], size <= listed
    if not few:
        rows, hosts = ["min", "median", "max"], ["", f"{len(set(hosts))} hosts", ""]
    table = [["rank", *rows], ["host", *hosts]]
    for name, meaning in RANKS.items():
        if name in result.ranks and name != "hostname":
            values = result.ranks[name] / (1e6 if meaning.unit == "byte" else 1)
            table.append([meaning.symbol or name, *aligned(values if few else np.quantile(values, (0, 0.5, 1)))])
    widths = [max(map(len, column)) for column in table]
    apart = 2 if sum(widths) + 2 * len(widths) - 2 <= WIDTH else 1
    widths[1] = max(4, min(widths[1], WIDTH - sum(widths) + widths[1] - apart * (len(widths) - 1)))
    table[1] = [host[: widths[1]].ljust(widths[1]) for host in table[1]]
    lines = [
        (" " * apart).join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in zip(*table, strict=True)
    ]
    return [f"seconds; MPI calls; MB sent, received and peak memory{asked_memory(result)}", *lines]


def asked_memory(result: Result) -> str:
    """What a job of this run should ask for, where it has several ranks."""
    peaks = result.ranks.get("max_rss_bytes", np.zeros(0))
    found = memory.option(peaks) if len(peaks) > 1 else ""
    return f"; ask for {found}" if found else ""


def part(name: str, lines: list[str]) -> list[str]:
    """Lines with the name of the part on the left; the table of ranks takes the whole width below its name."""
    if name == "ranks":
        return [name.ljust(MARGIN) + lines[0], *lines[1:]] if lines else []
    return [(name if k == 0 else "").ljust(MARGIN) + line for k, line in enumerate(lines)]


def columns(cells: Sequence[Cell]) -> list[str]:
    """Cells in as many aligned columns as fit, read downwards; long cells below."""
    width = WIDTH - MARGIN
    long = [cell for cell in cells if sum(map(len, cell)) > LONG]
    short = [cell for cell in cells if sum(map(len, cell)) <= LONG]
    lines: list[str] = []
    for number_of in (4, 3, 2, 1):
        height = math.ceil(len(short) / number_of)
        blocks = [short[k : k + height] for k in range(0, len(short), max(1, height))]
        sides = [(max(len(key) for key, _ in block), max(len(value) for _, value in block)) for block in blocks]
        if sum(a + b + 2 for a, b in sides) + 3 * (len(sides) - 1) <= width:
            lines = [
                "   ".join(
                    f"{block[row][0]:{a}}  {block[row][1]:{b}}"
                    for block, (a, b) in zip(blocks, sides, strict=True)
                    if row < len(block)
                ).rstrip()
                for row in range(height)
            ]
            break
    for key, value in long:
        lines += textwrap.wrap(f"{key}  {value}", width, subsequent_indent="    ")
    return lines


def number(value: float) -> str:
    """Four significant digits."""
    return f"{float(f'{value:.4g}'):g}"


def aligned(values: Array) -> list[str]:
    """Values with their decimal points in line: four significant digits in the largest, at most four decimals."""
    most = float(np.max(np.abs(values), initial=0.0))
    if np.all(values == np.floor(values)) or not most < math.inf:
        return [f"{value:.0f}" for value in values]
    decimals = min(4, max(0, 3 - math.floor(math.log10(most))))
    return [f"{value:.{decimals}f}" for value in values]


def amount(size: float) -> str:
    """Bytes as B, kB, MB …"""
    factor, name = scale("byte", size)
    return f"{number(size / factor)} {name}"


def count(number_of: int, what: str) -> str:
    return f"{number_of:,} {what}" + ("" if number_of == 1 else "s")
