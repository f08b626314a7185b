"""python -m benchmarks.speed.startup: the seconds of whole commands.

start   a bare ``python -c pass``, ``import mpifed``, ``mpifed --version`` and the default study on 5 ranks, in turn,
        several times each. ``wall s`` is the median (smallest–largest) of the wall time of the command; ``CPU s`` that
        of all its processes together, which a busy machine changes little; ``goal`` what the median of the wall time
        should not exceed: for the import beyond that of the bare Python, measured next to it
flute   the study of FLUTE's table of speeds: logistic regression on MNIST, 1000 clients of log-normal sizes, 69 samples
        in the mean, a tenth of them for testing; 10 clients a round, one epoch of mini-batches of 10, 100 rounds, an
        evaluation every 20; float32, numpy, one process. The images are MNIST's 70,000 where MPIFED_DATA has them,
        otherwise random bytes in files of the same shapes. ``whole`` are the CPU seconds of ``python -m mpifed run``
        from its start to its end, all modules compiled to bytecode before: median (smallest–largest) of the
        repetitions. Below it is what takes this time, from one more run

Published in 2022 for such a study, on other machines, and nothing to compare ours with: FLUTE 200 s, FedML with MPI
189 s, Flower 1,814 s on CPUs, FLUTE 91 s on two GPUs (arXiv:2203.13789).
"""

import argparse
import functools
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.speed.measuring import LAUNCHER, children, fresh, parser, play, printed, starter
from benchmarks.speed.printing import Table, spread
from mpifed.core.errors import UserError
from mpifed.core.toml import to_toml
from mpifed.data.dataset import Data

RANKS = 5
WHOLE = 3.0  # seconds, the goal of FLUTE's study
CLIENTS = 1000
SAMPLES = 69_000
LEAST = 10  # of a client
IMAGES = {"train": 60_000, "t10k": 10_000}
SIDE = 28
PARTS = {  # what is timed of FLUTE's study: where a function is, and what it does
    "run:prepare": "reading images and dividing them",
    "run:housed": "filling blocks",
    "rounds:played": "local steps and means",
    "rounds:evaluated": "evaluating 1000 clients, six times",
}


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


def timed(command: Sequence[str], variables: dict[str, str] | None = None) -> Start:
    """Run a command to its end. SystemExit where it fails."""
    cpu = children()
    begun = time.perf_counter()
    printed(command, variables=variables)
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


def starts(args: argparse.Namespace) -> None:
    """The table of commands."""
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


def study(rounds: int) -> dict[str, Any]:
    """FLUTE's experiment."""
    return {
        "rounds": rounds,
        "dtype": "float32",
        "kernels": "numpy",
        "problem": "softmax",
        "data": {"name": "mnist", "part": "both", "clients": CLIENTS, "test": 0.1, "partition": partition()},
        "selection": {"name": "uniform", "count": 10},
        "evaluate": {"every": 20},
        "algorithm": {"name": "fedavg", "epochs": 1, "batch_size": 10, "step": {"name": "constant", "a": 0.03}},
        "stop": {"gradient": 0.0},
    }


def partition() -> dict[str, Any]:
    """Log-normal sizes of the clients, at least ``LEAST`` and ``SAMPLES`` together."""
    share = np.random.default_rng(0).lognormal(size=CLIENTS)
    sizes = LEAST + np.floor(share / share.sum() * (SAMPLES - LEAST * CLIENTS)).astype(int)
    sizes[: SAMPLES - sizes.sum()] += 1
    return {"name": "sizes", "sizes": sizes.tolist()}


def images(folder: Path) -> str:
    """A value of MPIFED_DATA with MNIST, generated into ``folder`` where there is none."""
    try:
        Data.build({"name": "mnist", "part": "both"}, "data").locate()
        return os.environ["MPIFED_DATA"]
    except UserError:
        rng = np.random.default_rng(0)
        (folder / "mnist").mkdir()
        for part, count in IMAGES.items():
            pixels, labels = rng.integers(0, 256, (count, SIDE, SIDE), np.uint8), rng.integers(0, 10, count, np.uint8)
            for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
                head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
                (folder / "mnist" / f"{part}-{kind}-ubyte").write_bytes(head + values.tobytes())
        return str(folder)


def inside(words: list[str]) -> dict[str, float]:
    """Run the study in this process, a new one: what takes its CPU seconds."""
    from mpifed.cli.main import main as command
    from mpifed.experiment import rounds, run

    modules: dict[str, Any] = {"run": run, "rounds": rounds}
    spent = {"Python, modules": time.process_time()}
    for place, what in PARTS.items():
        module, name = place.split(":")
        setattr(modules[module], name, clocked(getattr(modules[module], name), what, spent))
    command(words)
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent["the rest: records, result file, checks"] = used.ru_utime + used.ru_stime - sum(spent.values())
    return spent


def clocked(function: Any, what: str, spent: dict[str, float]) -> Any:
    """The same function, whose CPU seconds are added to ``spent``."""

    @functools.wraps(function)
    def measured(*args: Any) -> Any:
        begun = time.process_time()
        try:
            return function(*args)
        finally:
            spent[what] = spent.get(what, 0.0) + time.process_time() - begun

    return measured


def flute(args: argparse.Namespace) -> None:
    """The table of FLUTE's study."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = images(folder)
        (folder / "study.toml").write_text(to_toml(study(args.rounds)), "utf-8")
        variables = {
            "MPIFED_DATA": data,
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        words = ["run", str(folder / "study.toml"), "-q", "--force", "-o", str(folder / "out.h5")]
        command = [sys.executable, "-m", "mpifed", *words]
        _, *whole = [timed(command, variables).cpu for _ in range(args.repeat + 1)]  # the first compiles modules
        with patch.dict(os.environ, variables):
            parts = fresh(inside, words)
    kind = "random bytes in the shapes of MNIST" if data == name else "MNIST"
    found = spread(whole)
    print(f"{kind}, {args.rounds} rounds: CPU seconds")
    print(f"whole {found}, goal ≤ {WHOLE}: {'yes' if found.median <= WHOLE else 'no'}")
    table = Table({"part": 38, "CPU s": 6}, args.to and args.to / "flute.csv")
    for what, seconds in parts.items():
        table.row(what, seconds)


def main() -> None:
    options: dict[str, Any] = {"part": "start", "repeat": 9, "rounds": 100, "launcher": LAUNCHER, "to": None}
    play({"start": starts, "flute": flute}, parser(__doc__, **options).parse_args())


if __name__ == "__main__":
    main()
