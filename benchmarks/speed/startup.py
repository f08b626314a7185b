"""python -m benchmarks.speed.startup: the seconds of whole commands.

starts  a bare ``python -c pass``, ``import mpifed``, ``mpifed --version`` and the default study on 5 ranks, in turn,
        several times each
waits   commands that users wait for, each a third as often: lists, runs of 10 and of 1,000,000 clients with a sample
        each, ``resume``, ``tune`` with 96 runs of 30 rounds, ``compare`` of 1,000 results and ``plot`` of 100: copies
        of 20, of four methods and five seeds with 50 rounds

``wall s`` is the median (smallest–largest) of the wall time of the command; ``CPU s`` that of all its
processes together, which a busy machine changes little; ``goal`` what the median of the wall time should not exceed:
for the import beyond that of the bare Python, measured next to it.
"""

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from benchmarks.speed.measuring import LAUNCHER, Table, children, gaussian, parser, play, printed, spread, starter

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
    python, program = [sys.executable], [sys.executable, "-m", "mpifed"]
    found = {
        "python": [*python, "-c", "pass"],
        "import mpifed": [*python, "-c", "import mpifed"],
        "--version": [*program, "--version"],
    }
    start = starter(launcher, RANKS)
    if start:
        result = str(folder / "run.h5")
        found[f"study, {RANKS} ranks"] = [*start, *program, "run", "-q", "--force", "-o", result]
    return found


def waits(folder: Path, tiny: bool) -> dict[str, list[str]]:
    """The commands that users wait for; with ``tiny`` a hundredth of the clients, runs and results."""
    program = [sys.executable, "-m", "mpifed"]
    few = 100 if tiny else 1
    files = copied_results(folder, 1000 // few)
    study, many = ["rounds=30", "stop.gradient=1e-3"], 1_000_000 // few
    run = [*program, "run", "-q", "--force", "-o"]
    first = str(folder / "first.h5")
    timed([*run, first, "rounds=10", "stop.gradient=0"])
    tune = ["--method", "fedprox", "--method", "scaffold", "--seeds", "100:104", "-j", "1", "-q", "--force"]
    second = str(folder / "second.h5")
    ends = [(shlex.quote(first + end), shlex.quote(second + end)) for end in ("", ".checkpoint")]
    again = [f"rm -rf {to} && cp -r {whence} {to}" for whence, to in ends]
    resume = " && ".join([*again, shlex.join([*program, "resume", second, "rounds=20", "-q"])])
    return {
        "--help": [*program, "--help"],
        "list": [*program, "list"],
        "run, 10 clients": [*run, str(folder / "few.h5"), "data.clients=10", "rounds=10", "stop.gradient=0"],
        f"run, {many:,} clients": [*run, str(folder / "many.h5"), *gaussian(many, 1, 2), "rounds=3", "selection=all"],
        "resume, 10 rounds": ["sh", "-c", resume],
        "tune": [*program, "tune", *study, *tune, "--runs", str(12 // min(few, 6)), "-o", str(folder / "tuned")],
        f"compare, {len(files):,} results": [*program, "compare", *files],
        "plot, 100 results": [*program, "plot", *files[:100], "-o", str(folder / "curves.pdf"), "--force"],
    }


def copied_results(folder: Path, count: int) -> list[str]:
    """Files of results, copies of the same runs."""
    own = []
    for method, seed in product(("fedavg", "fedprox", "scaffold", "feddyn"), range(5)):
        own.append(folder / f"{method}-{seed}.h5")
        mpifed.run(algorithm=method, seed=seed, rounds=50, stop={"gradient": 0.0}, progress=False).save(own[-1])
    files = [folder / f"copy-{k}.h5" for k in range(count)]
    for k, file in enumerate(files):
        shutil.copyfile(own[k % len(own)], file)
    return list(map(str, files))


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
    options: dict[str, Any] = {"part": "starts,waits", "repeat": 9, "launcher": LAUNCHER, "tiny": False, "to": None}
    args = parser(__doc__, **options).parse_args()
    play({"starts": partial(measure, False), "waits": partial(measure, True)}, args)


def measure(long: bool, args: argparse.Namespace) -> None:
    """Print a table of commands, of ``long`` ones a third as often."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = waits(Path(folder), args.tiny) if long else commands(args.launcher, Path(folder))
        for command in () if long else jobs.values():
            timed(command)  # files are in memory afterwards
        count = -(-args.repeat // 3) if long else args.repeat
        turns = [[timed(command) for command in jobs.values()] for _ in range(count)]
    walls = {name: [turn[k].wall for turn in turns] for k, name in enumerate(jobs)}
    table = Table(
        {"command": 22, "wall s": 24, "CPU s": 24, "goal": 4},
        args.to and args.to / ("waits.csv" if long else "startup.csv"),
    )
    for k, name in enumerate(jobs):
        cpu = spread([turn[k].cpu for turn in turns])
        table.row(name, spread(walls[name]), cpu, verdict(GOALS.get(name), name, walls))


if __name__ == "__main__":
    main()
