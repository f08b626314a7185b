"""How the programs of speed measure and print: options, times in turn, copies on all cores, new processes, tables.

Absolute times vary between machines and over time. So two things are measured in turn in the same run, and their ratio
is told. Cores share caches and memory bandwidth, so that a ratio measured alone on an idle machine says little about a
node whose cores all work: with ``--busy`` a copy of the measurement runs on each core as well, in a new process with
data of its own. Copies begin together, and one that has all its repetitions goes on until the last copy has them too.
"""

import argparse
import csv
import math
import multiprocessing
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, NamedTuple

import numpy as np

import mpifed

Job = Callable[[], Any]  # one repetition

GAP = 2  # blanks between columns
NONE = "–"  # a cell without a number

_together: Any = None  # in a copy: the barrier at which all begin, and the number of copies that still measure


def words(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> list[int]:
    return [int(float(word)) for word in text.split(",")]


OPTIONS: dict[str, dict[str, Any]] = {  # of all programs: what argparse has to know beside the default
    "settings": {"nargs": "*", "metavar": "KEY=VALUE", "help": "settings of our runs"},
    "part": {"help": "what is measured, of those above"},
    "rounds": {"type": int, "help": "rounds of a run"},
    "repeat": {"type": int, "help": "repetitions, in turn"},
    "cases": {"type": words, "help": "what is measured, comma-separated"},
    "batches": {"type": numbers, "help": "sizes of mini-batches, comma-separated"},
    "dtypes": {"type": words, "help": "comma-separated"},
    "kernels": {"choices": ("numpy", "compiled", "both"), "help": "what computes; both: compiled too, with numba"},
    "busy": {"action": "store_true", "help": "also with a copy on each core at once; the worst copy is told"},
    "sizes": {"action": "store_true", "help": "also with blocks of fixed sizes"},
    "bare": {"action": "store_true", "help": "also a loop over blocks that has the products and nothing else"},
    "tiny": {"action": "store_true", "help": "small sizes, which show that it runs, not how fast it is"},
    "most": {"type": float, "help": "the largest size"},
    "to": {"type": Path, "metavar": "FOLDER", "help": "folder of tables and pictures"},
    "launcher": {"help": "command that starts ranks"},
    "ranks": {"type": numbers, "help": "numbers of ranks, comma-separated"},
    "timeout": {"type": float, "help": "maximum seconds of a run"},
    "steps": {"type": numbers, "help": "numbers of local steps, comma-separated"},
    "case": {"choices": ("A", "B"), "help": "size of the problem"},
    "clients": {"type": numbers, "help": "numbers of clients, comma-separated"},
    "samples": {"type": int, "help": "samples of a client"},
    "scale": {"type": float, "help": "so many times the clients"},
    "only": {"help": "only those whose name contains this"},
    "device": {"choices": ("cpu", "cuda"), "help": "where networks and samples are"},
    "methods": {"help": "methods, separated as the default is"},
}
LAUNCHER = "mpirun -n {ranks}"


def parser(text: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with the options of OPTIONS that are named, with these defaults; ``text`` is its help."""
    found = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        settings = OPTIONS[name]
        if name == "settings":
            found.add_argument(name, **settings)
        elif settings.get("action"):
            found.add_argument(f"--{name}", **settings)
        else:
            told = "" if default is None else f" (default: {str(default).replace('%', '%%')})"
            found.add_argument(f"--{name}", **{**settings, "help": settings["help"] + told}, default=default)
    return found


def play(parts: Mapping[str, Callable[[argparse.Namespace], None]], args: argparse.Namespace) -> None:
    """Measure the parts that --part names, one after the other."""
    for name in args.part.split(","):
        if name not in parts:
            sys.exit(f"there is no part {name!r}; --part takes {', '.join(parts)}")
        parts[name](args)


def among(names: Sequence[str], there: Iterable[str]) -> Sequence[str]:
    """The ``names`` of --cases. SystemExit, with the names that there are, for one that is none of them."""
    if unknown := [name for name in names if name not in there]:
        sys.exit(f"there is no {unknown[0]!r}; --cases takes {', '.join(there)}")
    return names


def kernels(args: argparse.Namespace) -> tuple[str, ...]:
    """The kernels that --kernels names, one after the other."""
    both = ("numpy", "compiled") if find_spec("numba") else ("numpy",)
    return both if args.kernels == "both" else (args.kernels,)


def clock(job: Job, count: int, now: Callable[[], float] = time.process_time) -> float:
    """Mean seconds of ``count`` calls, by default of CPU time."""
    begun = now()
    for _ in range(count):
        job()
    return (now() - begun) / count


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def everyone(prepare: Callable[[], Job], args: argparse.Namespace) -> list[list[Any]]:
    """The repetitions of one process alone and, with --busy, then those of each copy."""
    alone = copies(prepare, args.repeat, cores()[:1])
    return alone + (copies(prepare, args.repeat, cores()) if args.busy else [])


def quoted(ratios: Sequence[float]) -> list[float]:
    """The cells of the ratios of ``everyone``: alone and, with copies, that of the worst, and the worst of all."""
    return [ratios[0], max(ratios[1:]), max(ratios)] if len(ratios) > 1 else [ratios[0]]


def copies(prepare: Callable[[], Job], repeat: int, places: Sequence[int]) -> list[list[Any]]:
    """Measure in a new process on each of the cores ``places``, at once: ``repeat`` values of each copy.

    ``prepare`` is called in each copy and returns the job; it must be a function that can be sent to a process.
    """
    context = multiprocessing.get_context("spawn")
    shared = context.Barrier(len(places)), context.Value("i", len(places))
    with ProcessPoolExecutor(len(places), context, join, (shared,)) as pool:
        found = [pool.submit(copy, core, prepare, repeat) for core in places]
        errors = [error for one in found if (error := one.exception()) is not None]
        # the copy that failed broke the barrier of the others, whose errors say nothing
        for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
            raise error
        return [one.result() for one in found]


def join(shared: Any) -> None:
    """Tell a new process what the copies share."""
    global _together
    _together = shared


def copy(core: int, prepare: Callable[[], Job], repeat: int) -> list[Any]:
    """Measure in this process; it stays at work until all copies have measured."""
    barrier, measuring = _together
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    try:
        job = prepare()
        barrier.wait()
        found = [job() for _ in range(repeat)]
    except BaseException:
        barrier.abort()
        raise
    finally:
        with measuring.get_lock():
            measuring.value -= 1
    while measuring.value > 0:
        job()
    return found


def fresh(job: Callable[..., Any], *args: Any) -> Any:
    """What a function returns in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(job, *args).result()


def children() -> float:
    """CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Outcome(NamedTuple):
    """A run of mpifed: its result and the wall seconds of the whole command."""

    result: Any
    seconds: float

    @property
    def round(self) -> float:
        """Median wall seconds of a round without evaluation and writing; the first of several is a warm-up."""
        spent = np.diff(self.result.rounds["elapsed_seconds"])
        return float(np.median(spent[1:] if len(spent) > 1 else spent))


def launched(launcher: str, ranks: int, settings: Sequence[str], path: Path, timeout: float = 600) -> Outcome:
    """Run ``python -m mpifed run settings -o path`` under the launcher; "" runs one process without MPI."""
    command = [*starter(launcher, ranks), sys.executable, "-m", "mpifed", "run", *settings, "-q", "--force"]
    begun = time.perf_counter()
    printed([*command, "-o", str(path)], timeout)
    seconds = time.perf_counter() - begun
    result = mpifed.load(path)
    path.unlink()
    return Outcome(result, seconds)


def printed(command: Sequence[str], timeout: float | None = None) -> str:
    """Run a command to its end: what it printed. SystemExit with what it said where it fails."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(command, **pipes, text=True, timeout=timeout, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def starter(launcher: str, ranks: int) -> list[str]:
    """Split the launcher's command; a program next to this Python takes precedence over one on the PATH."""
    command = shlex.split(launcher.format(ranks=ranks))
    if not command:
        return []
    return [shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0], *command[1:]]


def gaussian(clients: int, samples: int, features: int) -> list[str]:
    """The words of ``mpifed run`` for logistic regression on generated data of this size."""
    sizes = (f"data.clients={clients}", f"data.samples={samples}", f"data.features={features}")
    return ["data=gaussian", *sizes, "problem=logistic"]


def averaging(clients: int, samples: int, features: int, rounds: int) -> list[str]:
    """The same for FedAvg with 5 full-gradient steps of all clients on them, evaluated at the start and at the end."""
    words = ["algorithm=fedavg", "algorithm.k0=5", "selection=all", f"rounds={rounds}", f"evaluate.every={rounds}"]
    return [*gaussian(clients, samples, features), *words]


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
