"""python -m benchmarks.speed.studies.endurance: the memory of a long run, and whether its rounds become slower.

FedAvg on gaussian data, 8 clients × 4 samples × 4 features, in one process, with a result file: 200,000 rounds of about
a tenth of a millisecond, so what is counted is what a round leaves behind. Three records: an evaluation every 100
rounds, one in every round, and a model every 100 rounds beside. Every run is a new process.

``resident MB`` is the memory of the process after the warm-up (1000 rounds, when everything has been used once) and at
the end, ``growth`` the difference in per cent; the goal is below 5. ``round µs`` is the wall time of a round in the
first and in the last tenth of the rounds after the warm-up, with evaluation and writing; ``file`` the size of the
result.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import mpifed

STUDY = {
    "algorithm": "fedavg",
    "data": "gaussian",
    "data.clients": 8,
    "data.samples": 4,
    "data.features": 4,
    "stop.gradient": 0.0,
    "evaluate.every": 100,
}
RECORDS: dict[str, dict[str, Any]] = {
    "f every 100 rounds": {},
    "f in every round": {"evaluate.every": 1},
    "and a model every 100": {"record.models": 100},
}
WARM = 1000  # rounds of the warm-up
GOAL = 5.0  # per cent
MB = 1e6


class Mark(NamedTuple):
    """The state after a round: bytes of memory, and seconds since the start."""

    round: int
    memory: int
    seconds: float


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def marked(rounds: int) -> list[int]:
    """The rounds to be looked at: end of the warm-up, of the first tenth, begin of the last tenth, end."""
    tenth = (rounds - WARM) // 10
    return [WARM, WARM + tenth, rounds - tenth, rounds]


def run(rounds: int, record: dict[str, Any], path: Path) -> list[Mark]:
    """Run the study in this process: the marks of its rounds."""
    marks: list[Mark] = []
    wanted, begun = set(marked(rounds)), time.perf_counter()

    def look(round: int, row: object) -> None:
        if round in wanted:
            marks.append(Mark(round, resident(), time.perf_counter() - begun))

    mpifed.run(None, STUDY | {"rounds": rounds} | record, path=path, force=True, progress=False, callback=look)
    return marks


def line(name: str, marks: list[Mark], size: int) -> tuple[str, float]:
    """The line of a run in the table, and its growth in per cent."""
    warm, early, late, end = marks
    growth = 100 * (end.memory / warm.memory - 1)
    first = (early.seconds - warm.seconds) / (early.round - warm.round) * 1e6
    last = (end.seconds - late.seconds) / (end.round - late.round) * 1e6
    return (
        f"{name:<24}{end.round:>9}{warm.memory / MB:>9.1f}{end.memory / MB:>8.1f}{growth:>8.1f} %"
        f"{first:>10.0f}{last:>8.0f}{size / MB:>9.1f}"
    ), growth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=float, default=2e5, help="rounds of a run (default: 200,000)")
    parser.add_argument("--only", default="", help="only the records whose name contains this")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a record, to be run in this process
    args = parser.parse_args()
    rounds = int(args.rounds)
    if rounds < 2 * WARM:
        parser.error(f"--rounds must be at least {2 * WARM}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        if args.one is not None:
            marks = run(rounds, RECORDS[args.one], path)
            print(json.dumps([marks, path.stat().st_size]))
            return
    print(f"{'recorded':<24}{'rounds':>9}{'resident MB':>17}{'growth':>10}{'round µs':>18}{'file MB':>9}", flush=True)
    above = []
    for name in RECORDS:
        if args.only in name:
            command = [sys.executable, "-m", "benchmarks.speed.studies.endurance", f"--rounds={rounds}", "--one", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            marks, size = json.loads(done.stdout)
            text, growth = line(name, [Mark(*mark) for mark in marks], size)
            print(text, flush=True)
            above += [name] * (growth >= GOAL)
    print(f"growth below {GOAL:.0f} %: " + ("yes" if not above else f"not of {', '.join(above)}"))


if __name__ == "__main__":
    main()
