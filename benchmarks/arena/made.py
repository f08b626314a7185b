"""The rows that are committed, and made.toml: by which version, on which machine, when, and what it cost."""

import datetime
import gzip
import os
import platform
import tomllib
from pathlib import Path
from typing import NamedTuple

import mpifed
from benchmarks.arena.plan import file
from benchmarks.arena.runs import Row, Table, spelt
from benchmarks.rows import listed, processor, span
from mpifed.core.toml import toml_value
from mpifed.results.provenance import git_commit

DIGITS = 6  # significant digits of a cost
HEAD = "# Written by python -m benchmarks.arena pack: where the rows of committed.jsonl.gz come from.\n"


class Made(NamedTuple):
    """``runs`` rows took ``cpu_seconds``; several versions, commits, machines and days in one text each."""

    version: str
    commit: str
    machine: str
    date: str
    runs: int
    cpu_seconds: float


def pack(table: Table, path: Path) -> Path:
    """Write the rows, sorted, with costs of few digits, and made.toml, which goes on to tell of rows that stay."""
    rows = sorted(table.rows.values(), key=lambda row: row.task)
    seconds = round(sum(row.seconds for row in rows), 1)
    now = Made(mpifed.__version__, (git_commit() or "")[:10], machine(), str(datetime.date.today()), len(rows), seconds)
    old = read() if table.more == path and path.exists() else now  # of rows that stay
    found = now._replace(
        version=listed((old.version, now.version)),
        commit=listed((old.commit, now.commit)),
        machine=" and ".join(dict.fromkeys((old.machine, now.machine))),
        date=span((old.date, now.date)),
    )
    raw = "".join(spelt(short(row)) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(raw, mtime=0))
    lines = [f"{key} = {toml_value(value)}" for key, value in found._asdict().items()]
    file("made.toml").write_text("\n".join([HEAD, *lines, ""]), "utf-8")
    return path


def short(row: Row) -> Row:
    """A row whose costs have few digits."""
    costs = {score: [float(f"{cost:.{DIGITS}g}") for cost in of] for score, of in row.costs.items()}
    return row._replace(costs=costs)


def read() -> Made:
    """made.toml."""
    return Made(**tomllib.loads(file("made.toml").read_text("utf-8")))


def machine() -> str:
    """The processor, its cores, and Python."""
    return f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
