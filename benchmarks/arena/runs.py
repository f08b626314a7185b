"""The table of runs, one row each, and running what is missing of it in several processes."""

import datetime
import gzip
import json
import math
import os
import platform
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import mpifed
from benchmarks.arena.costs import Ended, curve, hits, run
from benchmarks.arena.plan import available, facts, file, key, numbers, random, refuse_unlocked, setting, workloads
from benchmarks.rows import listed, processor, span
from benchmarks.running import pool
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.experiment.progress import format_duration
from mpifed.results.provenance import git_commit

CHUNK = 10  # runs of one workload and method that a process does before its rows are written


class Task(NamedTuple):
    """A run: try ``number`` of a method on a workload."""

    workload: str
    method: str
    number: int
    seed: int


class Row(NamedTuple):
    """What a run cost: score -> the cost of each goal, inf for a miss; CPU ``seconds``; ``key`` as in plan.py."""

    task: Task
    costs: dict[str, list[float]]
    seconds: float
    key: str


Rows = dict[Task, Row]


class Table:
    """The rows in a file of JSON lines, those of other rules left out, beside those of a packed file ``more``."""

    def __init__(self, path: Path, more: Path | None = None) -> None:
        self.path, self.more = path, more
        self.rows: Rows = {}
        key_of = cache(current)
        for line in lines(path) + (lines(more) if more else []):  # packed rows count, whose costs have few digits
            row = parsed(line)
            if row is None:
                continue
            if row.key == key_of(row.task.workload, row.task.method):
                self.rows[row.task] = row

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows at the end of the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")  # by a process that was killed
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * torn)
            for row in rows:
                self.rows[row.task] = row
                file.write(spelt(row) + "\n")


def lines(path: Path) -> list[str]:
    """The lines of a file, which may be packed; none where it is not there."""
    if not path.exists():
        return []
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()


def current(workload: str, method: str) -> str:
    """The hash that a row of today's rules has; empty for what they do not have."""
    try:
        return key(workloads()[workload], method)
    except (KeyError, ValueError, UserError):
        return ""


def spelt(row: Row) -> str:
    """A row as JSON, misses as null."""
    costs = {score: [None if math.isinf(cost) else cost for cost in of] for score, of in row.costs.items()}
    return json.dumps([*row.task, costs, round(row.seconds, 3), row.key])


def parsed(line: str) -> Row | None:
    """The row of a line; None for a line that a killed process left unfinished."""
    try:
        *task, costs, seconds, own = json.loads(line)
    except ValueError:
        return None
    found = {score: [math.inf if cost is None else cost for cost in of] for score, of in costs.items()}
    return Row(Task(*task), found, seconds, own)


def carried_out(tasks: Sequence[Task]) -> list[Row]:
    """Run tasks of one workload and method, one after another; where nothing is drawn, seeds draw devices alone."""
    found: list[Row] = []
    name, label = tasks[0][:2]
    workload, known = workloads()[name], facts()[name]
    own = key(workload, label)
    once = not random(name, label)
    last: tuple[int, Ended | None] | None = None
    for task in tasks:
        begun = time.process_time()
        if not (once and last is not None and last[0] == task.number):
            last = task.number, run(workload, known, setting(label, task.number, known.r), task.seed)
        ended = last[1]
        costs = hits(None if ended is None else curve(ended, task.seed), known)
        found.append(Row(task, costs, time.process_time() - begun, own))
    return found


def pieces(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Tasks of the same workload and method, a few at a time."""
    together: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        together[task.workload, task.method].append(task)
    for group in together.values():
        for begin in range(0, len(group), CHUNK):
            yield group[begin : begin + CHUNK]


def do(tasks: Sequence[Task], table: Table, processes: int) -> None:
    """Run what the table lacks, and write it; UserError where a held-out workload is not to be opened."""
    refuse_unlocked(task.workload for task in tasks)
    todo = list(pieces([task for task in tasks if task not in table.rows]))
    total = sum(map(len, todo))
    done = 0
    begun = time.monotonic()
    for rows in ended(todo, processes):
        table.add(rows)
        done += len(rows)
        left = (time.monotonic() - begun) / done * (total - done)
        print(f"arena: {done} of {total} runs, about {format_duration(left)} left", file=sys.stderr)


def ended(todo: Sequence[list[Task]], processes: int) -> Iterator[list[Row]]:
    """The rows of pieces as they end, in several processes, or in this one."""
    if min(processes, len(todo)) < 2:
        yield from map(carried_out, todo)
        return
    with pool(min(processes, len(todo))) as workers:
        for future in as_completed([workers.submit(carried_out, piece) for piece in todo]):
            yield future.result()


def tries(names: Iterable[str], methods: Iterable[str], wanted: Iterable[int], seeds: Iterable[int]) -> list[Task]:
    """All runs of these tries, of the methods that a workload allows."""
    pairs = [pair for pair in product(names, methods) if available(*pair)]
    of, drawn = list(wanted), list(seeds)
    return [
        Task(*pair, number, seed)
        for pair in pairs
        for number, seed in product([k for k in of if k in numbers(pair[1], k + 1)], drawn)
    ]


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
    old = made() if table.more == path and path.exists() else now  # of rows that stay
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


def made() -> Made:
    """made.toml."""
    return Made(**tomllib.loads(file("made.toml").read_text("utf-8")))


def machine() -> str:
    """The processor, its cores, and Python."""
    return f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
