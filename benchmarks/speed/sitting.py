"""Run programs one after the other and keep what each prints and draws: for ``benchmarks.speed`` and its studies.

Each program runs in a process of its own. What it prints is shown, and kept in FOLDER/<name>.txt below its command;
pictures and tables go to FOLDER/<name>/. FOLDER/machine.txt describes the machine. The machine should have nothing else
to do: where others use more than a twentieth of a core before a program starts, its file says so. A program that fails
is told at the end, and the others run nevertheless.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from benchmarks.speed.common import starter
from benchmarks.speed.machine import describe, used

NOTED = 0.05  # cores that others use
LAUNCHED = "--launcher {launcher!r}"  # words of a program that starts ranks


class Command(NamedTuple):
    """A program, with its words at full length and with --quick; ``ranks`` that a launcher starts."""

    program: str  # below benchmarks.speed
    full: str = ""
    quick: str = ""
    ranks: int = 0


def run(name: str, commands: list[Command], args: argparse.Namespace) -> int:
    """Run the programs of a step; the number of those that failed."""
    with (args.to / f"{name}.txt").open("w", encoding="utf-8") as file:
        return sum(shown(words(name, command, args), file) != 0 for command in commands)


def words(name: str, command: Command, args: argparse.Namespace) -> list[str]:
    """The command line of a program."""
    start = starter(args.launcher, command.ranks) if command.ranks else []
    options = (command.quick if args.quick else command.full).format(to=args.to / name, launcher=args.launcher)
    return [*start, sys.executable, "-m", f"benchmarks.speed.{command.program}", *shlex.split(options)]


def shown(command: list[str], file: TextIO) -> int:
    """Run a command; what it prints goes to the terminal and to ``file``. Returns its exit code."""

    def tell(line: str) -> None:
        print(line, end="", flush=True)
        file.write(line)

    others = used()
    tell(f"$ {shlex.join(command).replace(sys.executable, 'python')}\n")
    if others > NOTED:
        tell(f"(other programs used {others:.2f} cores before)\n")
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as job:
        assert job.stdout is not None
        for line in job.stdout:
            tell(line)
    code = job.wait()
    tell(f"({'' if code == 0 else f'failed with code {code}, '}{time.perf_counter() - begun:.0f} s)\n\n")
    return code


def sit(steps: Mapping[str, list[Command]], text: str | None) -> None:
    """The command line of a sitting with these programs; ``text`` is its help."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--to", type=Path, default=Path("speed"), help="folder of what is printed and drawn (default: speed)")
    option("--only", default=",".join(steps), help="comma-separated (default: %(default)s)")
    option("--quick", action="store_true", help="small sizes, once each: some two minutes")
    option("--launcher", default="mpirun -n {ranks}", help="command that starts the ranks (default: %(default)r)")
    args = parser.parse_args()
    chosen = args.only.split(",")
    unknown = [name for name in chosen if name not in steps]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; --only takes {', '.join(steps)}")
    args.to.mkdir(parents=True, exist_ok=True)
    machine = describe()
    (args.to / "machine.txt").write_text(machine, "utf-8")
    print(machine, flush=True)
    begun = time.perf_counter()
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        if run(name, steps[name], args):
            failed.append(name)
    print(f"written to {args.to} in {(time.perf_counter() - begun) / 60:.1f} minutes")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
