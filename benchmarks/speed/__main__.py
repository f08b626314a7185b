"""python -m benchmarks.speed --to FOLDER: the measurements that docs/performance.md repeats at every change.

Each program runs in a process of its own. What it prints is shown, and kept in FOLDER/<name>.txt below its command;
pictures and tables go to FOLDER/<name>/. FOLDER/machine.txt describes the machine, which should have nothing else to
do: where others use more than a twentieth of a core before a program starts, its file says so. This and the studies
take about half an hour together on two cores. --quick takes smaller sizes and single repetitions, which show that
everything runs, not how fast it is. A program that fails is told at the end, and the others run nevertheless.

--studies takes what was measured once, for docs/performance.md and other pages: a study stays here because a page
quotes what it found; nothing watches its numbers. --machine describes the machine, and that is all.
"""

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.speed.measuring import LAUNCHER, cores, parser, starter
from mpifed.core.processor import choose_block_size
from mpifed.mpi.world import library_version
from mpifed.results.provenance import (
    describe_blas,
    describe_cpus,
    git_commit,
    library_versions,
    utc_now,
)

NOTED = 0.05  # cores that others use
PROCESSOR = ("Model name", "CPU family", "Model", "Stepping", "L1d cache", "L2 cache", "L3 cache")  # lines of lscpu


class Command(NamedTuple):
    """A program, with its words at full length and with --quick; ``ranks`` that a launcher starts."""

    program: str
    full: str = ""
    quick: str = ""
    ranks: int = 0


def scaling(words: str) -> Command:
    """Return a program of scaling, which starts ranks."""
    words += " --launcher {launcher}"
    return Command("scaling", words, words.replace("1,2,3,4", "1,2") + " --rounds 5 --repeat 1")


STEPS = {
    "rounds": [
        Command(
            "rounds", "--busy --bare --repeat 3 --kernels both", "--busy --bare --rounds 4 --repeat 1 --dtypes float32"
        ),
    ],
    "local-steps": [
        Command("local_steps", "--busy --kernels both --cases A,W,M", "--cases M --steps 2,5 --rounds 4 --repeat 1")
    ],
    "privacy": [Command("privacy", "--busy", "--clients 20 --rounds 2 --repeat 1")],
    "networks": [Command("networks", "--busy --batches 10,32", "--busy --tiny --rounds 3 --repeat 1 --cases MLP")],
    "collectives": [Command("collectives", "", "--most 1000 --rounds 20 --repeat 2", ranks) for ranks in (2, 3, 4)],
    "scaling-A": [scaling("--case A --ranks 1,2,3,4 --to {to}")],
    "scaling-B": [scaling("--case B --ranks 1,2,3,4 --to {to}")],
    "apart": [scaling(f"--part apart --case {case} --ranks 1,2") for case in "AB"],
    "picking": [Command("collectives", "--part picking", "--part picking --clients 1e3,1e4 --rounds 5")],
    "startup": [Command("startup", "--launcher {launcher}", "--launcher {launcher} --repeat 1 --tiny")],
    "memory": [Command("memory", "", "--scale 0.01 --only numpy")],
}
STUDIES = {
    "tree": [
        Command("collectives", "--part tree --launcher {launcher}", "--part tree --launcher {launcher} --ranks 2,3")
    ],
    "secondorder": [
        Command(
            "secondorder",
            "--launcher {launcher}",
            "--cases phishing --samples 5 --repeat 1 --methods 'newton;topk, LS, A'",
        )
    ],
    "passes": [
        Command("networks", "--part passes --rounds 6 --repeat 3", "--part passes --tiny --rounds 3 --repeat 1")
    ],
    "endurance": [Command("memory", "--part endurance", "--part endurance --rounds 3000")],
}


def run(name: str, commands: list[Command], args: argparse.Namespace) -> int:
    """Run the programs of a step; the number of those that failed."""
    with (args.to / f"{name}.txt").open("w", encoding="utf-8") as file:
        return sum(shown(words(name, command, args), file) != 0 for command in commands)


def words(name: str, command: Command, args: argparse.Namespace) -> list[str]:
    """The command line of a program."""
    start = starter(args.launcher, command.ranks) if command.ranks else []
    given = {"to": shlex.quote(str(args.to / name)), "launcher": shlex.quote(args.launcher)}
    options = (command.quick if args.quick else command.full).format(**given)
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
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        with subprocess.Popen(command, **pipes, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as job:
            assert job.stdout is not None
            for line in job.stdout:
                tell(line)
        code = job.returncode
    except OSError as error:
        tell(f"{command[0]} does not start: {error.strerror}\n")
        code = 127  # of shells, for a command that is not there
    tell(f"({'' if code == 0 else f'failed with code {code}, '}{time.perf_counter() - begun:.0f} s)\n\n")
    return code


def describe() -> str:
    """Lines of ``name: value``: date, processor, caches, memory, load and versions."""
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    facts = {"date": utc_now(), "cores": f"{len(cores())} {describe_cpus()}".strip(), **processor()}
    facts |= {
        "blocks": f"{choose_block_size().bytes:,} bytes ({choose_block_size().reason})",
        "memory": f"{gigabytes:.1f} GB",
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()) + " (of 1, 5 and 15 minutes)",
        "system": platform.platform(),
        "BLAS": describe_blas(),
        "MPI": mpi(),
    }
    facts |= library_versions() | {"commit": git_commit() or "unknown"}
    return "".join(f"{name}: {value}\n" for name, value in facts.items())


def processor() -> dict[str, str]:
    """Return what lscpu says of the processor and its caches, or its name where there is no lscpu."""
    if shutil.which("lscpu") is None:
        return {"processor": platform.processor() or platform.machine()}
    text = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env=os.environ | {"LC_ALL": "C"})
    facts = dict(line.split(":", 1) for line in text.stdout.splitlines() if ":" in line)
    return {name: facts[name].strip() for name in PROCESSOR if name in facts}


def mpi() -> str:
    """The MPI library, or none."""
    try:
        return library_version()
    except (ImportError, RuntimeError):
        return "none"


def used(seconds: float = 0.5) -> float:
    """Cores that programs use now; 0 where the system does not tell."""

    def busy() -> float:
        user, nice, system = Path("/proc/stat").read_text().split()[1:4]
        return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")

    try:
        before, begun = busy(), time.perf_counter()
        time.sleep(seconds)
        return (busy() - before) / (time.perf_counter() - begun)
    except OSError:
        return 0.0


def main() -> None:
    """Run the programs one after the other."""
    command = parser(__doc__, only="", launcher=LAUNCHER, to="speed")
    command.add_argument("--quick", action="store_true", help="small sizes, once each: some two minutes")
    command.add_argument("--studies", action="store_true", help="what was measured once, in place of the others")
    command.add_argument("--machine", action="store_true", help="describe the machine, and measure nothing")
    args = command.parse_args()
    steps = STUDIES if args.studies else STEPS
    chosen = args.only.split(",") if args.only else list(steps)
    if unknown := [name for name in chosen if name not in steps]:
        command.error(f"there is no {unknown[0]!r}; --only takes {', '.join(steps)}")
    machine = describe()
    print(machine, flush=True)
    if args.machine:
        return
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "machine.txt").write_text(machine, "utf-8")
    begun = time.perf_counter()
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        if run(name, steps[name], args):
            failed.append(name)
    print(f"written to {args.to} in {(time.perf_counter() - begun) / 60:.1f} minutes")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
