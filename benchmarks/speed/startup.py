"""python -m benchmarks.speed.startup: the seconds of whole commands.

A bare ``python -c pass``, ``import mpifed``, ``mpifed --version`` and the default study on 5 ranks, in turn, several
times each. ``wall s`` is the median (smallest–largest) of the wall time of the command; ``CPU s`` that of all its
processes together, which a busy machine changes little; ``goal`` what the median of the wall time should not exceed:
for the import beyond that of the bare Python, measured next to it.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.measuring import LAUNCHER, Table, children, parser, printed, spread, starter

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


def verdict(goal: Goal | None, name: str, walls: dict[str, list[float]]) -> str:
    """The goal of a command, and whether its median is within it."""
    if goal is None:
        return ""
    before = walls.get(goal.beyond, [0.0] * len(walls[name]))
    median = float(np.median(np.subtract(walls[name], before)))
    text = f"{median:.3f} ≤ {goal.seconds} beyond {goal.beyond}" if goal.beyond else f"≤ {goal.seconds}"
    return f"{text}: {'yes' if median <= goal.seconds else 'no'}"


def main() -> None:
    options: dict[str, Any] = {"repeat": 9, "launcher": LAUNCHER, "to": None}
    args = parser(__doc__, **options).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = commands(args.launcher, Path(folder))
        for command in jobs.values():
            timed(command)  # files are in memory afterwards
        turns = [[timed(command) for command in jobs.values()] for _ in range(args.repeat)]
    walls = {name: [turn[k].wall for turn in turns] for k, name in enumerate(jobs)}
    table = Table({"command": 16, "wall s": 24, "CPU s": 24, "goal": 4}, args.to and args.to / "startup.csv")
    for k, name in enumerate(jobs):
        cpu = spread([turn[k].cpu for turn in turns])
        table.row(name, spread(walls[name]), cpu, verdict(GOALS.get(name), name, walls))


if __name__ == "__main__":
    main()
