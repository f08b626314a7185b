"""python -m benchmarks.speed.startup: the seconds before a run does something.

Four commands in turn, several times each: a bare ``python -c pass``, ``import mpifed``, ``mpifed --version`` and the
default study on 5 ranks. ``wall s`` is the median (smallest–largest) of the wall time of the command; ``CPU s`` that of
all its processes together, which a busy machine changes little; ``goal`` what the median of the wall time should not
exceed: for the import beyond that of the bare Python, measured next to it.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed.common import printed, spread, starter

RANKS = 5


class Start(NamedTuple):
    """Seconds of a command: wall time, and CPU time of all its processes."""

    wall: float
    cpu: float


class Goal(NamedTuple):
    """The most seconds of a command, ``beyond`` those of another one."""

    seconds: float
    beyond: str = ""


GOALS = {"import mpifed": Goal(0.05, "python"), "--version": Goal(0.25), f"study, {RANKS} ranks": Goal(3.0)}


def commands(launcher: str, folder: Path) -> dict[str, list[str]]:
    """The commands that are timed; the study without a launcher is left out."""
    python, mpifed = [sys.executable], [sys.executable, "-m", "mpifed"]
    found = {
        "python": [*python, "-c", "pass"],
        "import mpifed": [*python, "-c", "import mpifed"],
        "--version": [*mpifed, "--version"],
    }
    start = starter(launcher, RANKS)
    if start:
        result = str(folder / "run.h5")
        found[f"study, {RANKS} ranks"] = [*start, *mpifed, "run", "-q", "--force", "-o", result]
    return found


def timed(command: Sequence[str]) -> Start:
    """Run a command to its end. SystemExit where it fails."""
    cpu = children()
    begun = time.perf_counter()
    printed(command)
    wall = time.perf_counter() - begun
    return Start(wall, children() - cpu)


def children() -> float:
    """CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdict(goal: Goal | None, name: str, walls: dict[str, list[float]]) -> str:
    """The goal of a command, and whether its median is within it."""
    if goal is None:
        return ""
    before = walls.get(goal.beyond, [0.0] * len(walls[name]))
    median = float(np.median(np.subtract(walls[name], before)))
    text = f"{median:.3f} ≤ {goal.seconds} beyond {goal.beyond}" if goal.beyond else f"≤ {goal.seconds}"
    return f"{text}: {'yes' if median <= goal.seconds else 'no'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9, help="interleaved repetitions (default: 9)")
    parser.add_argument("--launcher", default="mpirun -n {ranks}", help='starts ranks; "" leaves the study out')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = commands(args.launcher, Path(folder))
        found: dict[str, list[Start]] = {name: [] for name in jobs}
        for command in jobs.values():
            timed(command)  # files are in memory afterwards
        for _ in range(args.repeat):
            for name, command in jobs.items():
                found[name].append(timed(command))
    walls = {name: [start.wall for start in starts] for name, starts in found.items()}
    print(f"{'command':<18}{'wall s':<26}{'CPU s':<26}goal")
    for name, starts in found.items():
        cpu = spread([start.cpu for start in starts])
        print(f"{name:<18}{spread(walls[name])!s:<26}{cpu!s:<26}{verdict(GOALS.get(name), name, walls)}".rstrip())


if __name__ == "__main__":
    main()
