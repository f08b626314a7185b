"""A result on one screen."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpifed.core.toml import toml_value
from mpifed.results.result import Result

WIDTH, HEIGHT = 100, 40
MARGIN = 15  # characters on the left, for the name of a part
LONG = 42  # a cell of more characters has a line of its own
LISTED = 16  # most ranks that have a row each
COUNTS = ("exchanges", "uploads", "downloads")
ABSENT = ("asked", "dropped", "late")
BYTES = {"bytes_up": "up", "bytes_down": "down"}
SECONDS = {
    "compute_seconds": "compute, slowest rank",
    "client_seconds": "compute, all clients",
    "server_seconds": "server",
    "comm_seconds": "communication",
    "evaluate_seconds": "evaluation",
}
APART = {"round", "elapsed_seconds", "simulated_seconds", *COUNTS, *ABSENT, *BYTES, *SECONDS}
SIGNS = {"grad_norm_sq": "‖∇f‖²"}
RANK_COLUMNS = {
    "clients": "clients",
    "samples": "samples",
    "compute_seconds": "compute",
    "comm_seconds": "mpi",
    "wait_seconds": "wait",
    "evaluate_seconds": "eval",
    "io_seconds": "io",
    "mpi_calls": "calls",
    "mpi_bytes_sent": "sent",
    "mpi_bytes_received": "received",
    "max_rss_bytes": "memory",
}
MILLION = {"mpi_bytes_sent", "mpi_bytes_received", "max_rss_bytes"}

Cell = tuple[str, str]


def show(result: Result) -> str:
    """Configuration, outcome, communication, time and ranks of a run, on 40 lines of 100 characters."""
    upper = [
        title(result),
        *(
            part(name, columns(cells))
            for name, cells in (
                ("configuration", list(flat(result.config))),
                ("outcome", outcome(result)),
                ("communication", communication(result)),
                ("time (s)", times(result)),
            )
        ),
    ]
    text = ""
    for listed, gap in ((LISTED, "\n\n"), (LISTED, "\n"), (1, "\n\n"), (1, "\n")):
        parts = [*upper, part("ranks", ranks(result, listed))]
        text = gap.join("\n".join(lines) for lines in parts if lines)
        if text.count("\n") < HEIGHT:
            break
    return text


def title(result: Result) -> list[str]:
    """What ran on what, and how it ended."""
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


def flat(table: dict[str, Any], head: str = "") -> Iterator[Cell]:
    """The keys of a configuration as command-line overrides spell them: ``algorithm`` for ``algorithm.name``."""
    for key, value in table.items():
        path = head if key == "name" and head else f"{head}.{key}" if head else key
        if isinstance(value, dict):
            yield from flat(value, path)
        else:
            yield path, value if isinstance(value, str) and value and " " not in value else short(value)


def short(value: Any) -> str:
    """A value as TOML has it, 1e+12 for 1000000000000.0."""
    text = f"{value:e}".replace(".000000", "") if isinstance(value, float) else ""
    return text if text and len(text) < len(toml_value(value)) and float(text) == value else toml_value(value)


def outcome(result: Result) -> list[Cell]:
    """First and last value of everything that was measured."""
    cells = []
    for name, values in result.rounds.items():
        known = values[np.isfinite(values)]
        if name not in APART and len(known):
            first, last = number(known[0]), number(known[-1])
            cells.append((SIGNS.get(name, name), last if first == last else f"{first} → {last}"))
    return cells


def communication(result: Result) -> list[Cell]:
    """What travelled between server and clients."""
    last = {name: values[-1] for name, values in result.rounds.items() if len(values) and name in (*COUNTS, *BYTES)}
    return (
        [(name, f"{last[name]:,.0f}") for name in COUNTS if name in last]
        + [(name, f"{result.rounds[name].sum():,.0f}") for name in ABSENT if name in result.rounds]
        + [(word, f"{amount(last[name])} ({last[name]:,.0f})") for name, word in BYTES.items() if name in last]
    )


def times(result: Result) -> list[Cell]:
    """Where the time went, in seconds over all rounds; LCT is the mean of a round."""
    cells = [("TCT", number(result.tct)), ("LCT, a round", number(result.lct))]
    if "simulated_seconds" in result.rounds:
        cells.append(("simulated", number(result.rounds["simulated_seconds"][-1])))
    return cells + [
        (word, number(np.nansum(result.rounds[name]))) for name, word in SECONDS.items() if name in result.rounds
    ]


def ranks(result: Result, listed: int) -> list[str]:
    """A row a rank; minimum, median and maximum of more than ``listed`` ranks."""
    size = len(result.ranks.get("rank", ()))
    if not size:
        return []
    hosts = [str(host).partition(".")[0] for host in result.ranks.get("hostname", [""] * size)]
    rows, few = [str(rank) for rank in range(size)], size <= listed
    if not few:
        rows, hosts = ["min", "median", "max"], ["", f"{len(set(hosts))} hosts", ""]
    table = [["rank", *rows], ["host", *hosts]]
    for name, word in RANK_COLUMNS.items():
        if name in result.ranks:
            values = result.ranks[name] / (1e6 if name in MILLION else 1)
            table.append([word, *aligned(values if few else np.quantile(values, (0, 0.5, 1)))])
    widths = [max(map(len, column)) for column in table]
    apart = 2 if sum(widths) + 2 * len(widths) - 2 <= WIDTH else 1
    widths[1] = max(4, min(widths[1], WIDTH - sum(widths) + widths[1] - apart * (len(widths) - 1)))
    table[1] = [host[: widths[1]].ljust(widths[1]) for host in table[1]]
    lines = [
        (" " * apart).join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in zip(*table, strict=True)
    ]
    return ["seconds; number of MPI calls; MB sent, received and at most in memory", *lines]


def part(name: str, lines: list[str]) -> list[str]:
    """Lines with the name of the part in front; a table takes the whole width below it."""
    if name == "ranks":
        return [name.ljust(MARGIN) + lines[0], *lines[1:]] if lines else []
    return [(name if k == 0 else "").ljust(MARGIN) + line for k, line in enumerate(lines)]


def columns(cells: Sequence[Cell]) -> list[str]:
    """Cells in as many aligned columns as there is room for, read downwards; long ones below."""
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


def aligned(values: NDArray[Any]) -> list[str]:
    """A column with its decimal points in line: four significant digits in the greatest, four decimals at most."""
    most = float(np.max(np.abs(values), initial=0.0))
    if np.all(values == np.floor(values)) or not most < math.inf:
        return [f"{value:.0f}" for value in values]
    decimals = min(4, max(0, 3 - math.floor(math.log10(most))))
    return [f"{value:.{decimals}f}" for value in values]


def amount(size: float) -> str:
    """Bytes as B, kB, MB …"""
    value, units = float(size), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{number(value)} {units[0]}"


def count(number_of: int, what: str) -> str:
    return f"{number_of:,} {what}" + ("" if number_of == 1 else "s")
