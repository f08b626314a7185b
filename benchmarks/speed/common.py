"""Shared by the speed benchmarks: interleaved repetitions, ratios with spread, tables, and runs in a new process."""

import csv
import math
import multiprocessing
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from mpifed import Algorithm, Federation, Result


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
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if value else "0"


def turns(jobs: Sequence[Callable[[], object]], repeat: int, least: float = 0.0) -> np.ndarray:
    """Measure CPU seconds (repeat, jobs) of each job, interleaved, after one warm-up call.

    A repetition calls a short job several times, for ``least`` seconds in all, and takes the mean.
    """
    once = turn(jobs, least)
    return np.array([once() for _ in range(repeat)])


def turn(jobs: Sequence[Callable[[], object]], least: float = 0.0) -> Callable[[], np.ndarray]:
    """One repetition of ``turns``, to be run: CPU seconds (jobs,)."""
    counts = [max(1, math.ceil(least / max(clock(job, 1), 1e-9))) for job in jobs]
    return lambda: np.array([clock(job, count) for job, count in zip(jobs, counts, strict=True)])


def clock(job: Callable[[], object], count: int) -> float:
    """Mean CPU seconds of ``count`` calls."""
    begun = time.process_time()
    for _ in range(count):
        job()
    return (time.process_time() - begun) / count


class Idle(Algorithm):
    """A method whose clients have nothing to do: what host and server ask of an algorithm, and no more."""

    def start(self, fed: Federation) -> Any:
        raise AssertionError("nothing is run")

    def round(self, fed: Federation, server: Any) -> Any:
        raise AssertionError("nothing is run")


class Outcome(NamedTuple):
    """A run of mpifed: its result and the wall seconds of the whole command."""

    result: Result
    seconds: float


def launched(launcher: str, ranks: int, words: Sequence[str], path: Path, timeout: float) -> Outcome:
    """Run ``python -m mpifed run words -o path`` under the launcher; "" runs one process without MPI."""
    begun = time.perf_counter()
    printed([*starter(launcher, ranks), sys.executable, "-m", "mpifed", "run", *words, "-q", "-o", str(path)], timeout)
    seconds = time.perf_counter() - begun
    return Outcome(mpifed.load(path), seconds)


def printed(
    command: Sequence[str], timeout: float | None = None, name: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """Run a command to its end: what it printed. SystemExit with what it said where it fails."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        env=environment,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{name or shlex.join(command)} ended with code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def gaussian(clients: int, samples: int, features: int) -> list[str]:
    """The words of ``mpifed run`` for logistic regression on generated data of this size."""
    sizes = (f"data.clients={clients}", f"data.samples={samples}", f"data.features={features}")
    return ["data=gaussian", *sizes, "problem=logistic"]


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(head)
        table.writerows(rows)


def told(folder: Path, tables: str, picture: str, drawn: bool) -> None:
    """Say what has been written, and why there is no picture where none was drawn."""
    missing = "the picture needs matplotlib: pip install matplotlib"
    print(f"written to {folder}: {tables}, {picture if drawn else missing}")


def fresh(job: Callable[..., Any], *args: Any) -> Any:
    """What a function returns in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(job, *args).result()


def starter(launcher: str, ranks: int) -> list[str]:
    """Split the launcher's command; a program next to this Python takes precedence over one on the PATH."""
    words = shlex.split(launcher.format(ranks=ranks))
    return [shutil.which(words[0], path=str(Path(sys.executable).parent)) or words[0], *words[1:]] if words else []


def round_seconds(result: Result) -> np.ndarray:
    """Wall seconds of each round without evaluation and writing. The first of several rounds is a warm-up, left out."""
    spent = np.diff(result.rounds["elapsed_seconds"])
    return spent[1:] if len(spent) > 1 else spent
