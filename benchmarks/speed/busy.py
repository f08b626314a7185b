"""The same measurement in as many processes as cores, at once: what each core does on a node that is busy.

Cores share caches and memory bandwidth. So a ratio that is measured alone on an idle machine says little about a node
whose cores all work. Each copy is a new process with data of its own, on a core of its own where the system can pin it.
The copies begin together, and one that has all its repetitions goes on working until the last copy has them too.
"""

import argparse
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from threading import BrokenBarrierError
from typing import Any

from mpifed.data.compiled import compiling

Job = Callable[[], Any]  # one repetition

_together: Any = None  # in a copy: the barrier at which all begin, and the number of copies that still measure


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option --busy."""
    parser.add_argument(
        "--busy",
        action="store_true",
        help="measure also with a copy on each core at once; of the ratios of the copies the worst is told",
    )


def add_kernels(parser: argparse.ArgumentParser) -> None:
    """The option --kernels."""
    parser.add_argument(
        "--kernels",
        choices=("numpy", "compiled", "both"),
        default="numpy",
        help="what computes; both: compiled too where numba is installed (default: numpy)",
    )


def kernels(args: argparse.Namespace) -> tuple[str, ...]:
    """The kernels that --kernels names, one after the other."""
    return ("numpy", "compiled")[: 1 + compiling.installed()] if args.kernels == "both" else (args.kernels,)


def copies(prepare: Callable[[], Job], repeat: int, places: Sequence[int]) -> list[list[Any]]:
    """Measure in a new process on each of the cores ``places``, at once: ``repeat`` values of each copy.

    ``prepare`` is called in each copy and returns the job; it must be a function that can be sent to a process.
    """
    context = multiprocessing.get_context("spawn")
    shared = context.Barrier(len(places)), context.Value("i", len(places))
    with ProcessPoolExecutor(len(places), context, join, (shared,)) as pool:
        found = [pool.submit(copy, core, prepare, repeat) for core in places]
        errors = [error for one in found if (error := one.exception()) is not None]
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
