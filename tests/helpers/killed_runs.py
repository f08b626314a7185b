"""Kill runs at random and compare what they resume to: ``python -m tests.helpers.killed_runs --kills 100``.

Three ranks, rounds of about 10 ms; a random rank gets SIGKILL at a random time. After every kill the run is resumed,
and may be killed again; the final file must hold the same rounds, model and selection, to the bit. Prints how many did.
With ``--survive 20``, under Open MPI, a client rank of four is killed and the others go on.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py

from mpifed.results.netcdf import repair_length
from tests.helpers.commands import background, mpirun

SIZES = "data=gaussian data.clients=60 data.samples=1200 data.features=60 problem=logistic rounds=80 stop.gradient=0.0"
KEPT = "checkpoint.every_rounds=7 record.models=5"
STUDY = f"algorithm=fedadmm {SIZES} selection.share=0.4 {KEPT}".split()
AWAY = (
    f"algorithm=fedprox algorithm.aggregate=all {SIZES} {KEPT} system.speed={{name='pareto',scale=1e3,shape=1.5}} "
    "system.jitter=0.4 asynchronous.arrivals=7 asynchronous.staleness=9"
).split()
CLOCKS, SIMULATED = "_seconds", ("simulated_seconds",)


def content(path: Path) -> dict[str, bytes]:
    """Everything in a result file that is no clock."""
    with h5py.File(path) as file:
        assert file.attrs["status"] == "finished", file.attrs["status"]
        assert "checkpoint" not in file
        names = [f"rounds/{name}" for name in file["rounds"] if name in SIMULATED or not name.endswith(CLOCKS)]
        names += ["model/x", "selection", "clients/times_selected"]
        names += [name for name in ("models/stored_round", "models/x", "model/personal") if name in file]
        return {name: file[name][()].tobytes() for name in names}


def start(ranks: int, *words: str | Path, launch: tuple[str, ...] = ()) -> subprocess.Popen:
    first, *rest = [str(word) for word in mpirun(ranks, "-m", "mpifed", *words)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return background([first, *launch, *rest], {"PYTHONFAULTHANDLER": "1"}, **pipes)


def children(process: subprocess.Popen) -> list[int]:
    """The ranks that a launcher started: its descendants that run mpifed."""
    found, waiting = [], [process.pid]
    while waiting:
        pid = waiting.pop()
        try:
            tasks = Path(f"/proc/{pid}/task").iterdir()
            waiting += [int(child) for task in tasks for child in (task / "children").read_text().split()]
            if b"mpifed" in (words := Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")) and words[1:2] == [b"-m"]:
                found.append(pid)
        except (OSError, ValueError):
            pass
    return found


def finish(process: subprocess.Popen, seconds: float = 60) -> int:
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        for pid in children(process):
            os.kill(pid, signal.SIGABRT)  # they say where they are
        time.sleep(1)
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"it hangs:\n{process.communicate()[1]}") from None
    return process.returncode


def opened(path: Path) -> float:
    """When a run's result file is there: its rounds begin."""
    deadline = time.monotonic() + 30
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < deadline, "no result file"
        time.sleep(0.005)
    return time.monotonic()


def struck(process: subprocess.Popen, path: Path, rng: random.Random, longest: float, spared: int = -1) -> None:
    """Kill a rank of a run within ``longest`` seconds after its file is there, but not the one that is ``spared``."""
    opened(path)
    time.sleep(rng.uniform(0, longest))
    if pids := [pid for pid in children(process) if spared < 0 or rank(pid) != spared]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)


def rank(pid: int) -> int:
    """The rank that a launcher gave a process."""
    variables = dict(
        line.split(b"=", 1) for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in line
    )
    return int(variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK", b"0")))


def survivor(folder: Path, seed: int, expected: dict[str, bytes], longest: float) -> tuple[bool, float]:
    """Whether a run of four ranks, of which a client rank is killed, ends as it should all the same; its seconds."""
    rng, path, begun = random.Random(seed), folder / f"{seed}.h5", time.monotonic()
    process = start(4, "run", *STUDY, "--survive", "-q", "-o", path, launch=("--with-ft", "ulfm"))
    struck(process, path, rng, longest, spared=0)
    seconds = outlived(process) - begun
    with h5py.File(path) as file:
        hit = "resumed" in file.attrs or file.attrs["ranks"] == 3
    print(f"  seed {seed}: {'a rank died' if hit else 'no rank died in time'}")
    return content(path) == expected, seconds


def outlived(process: subprocess.Popen) -> float:
    """Wait for the ranks of a run that survives a dead one, then for its launcher; when the ranks were gone."""
    return last_words(process)[0]


def last_words(process: subprocess.Popen) -> tuple[float, str]:
    """``outlived``, and what the ranks have written to stderr."""
    deadline = time.monotonic() + 90
    while process.poll() is None and children(process):
        assert time.monotonic() < deadline, "the ranks hang"
        time.sleep(0.05)
    ended = time.monotonic()
    try:
        _, said = process.communicate(timeout=5)
    except subprocess.TimeoutExpired:  # now and then Open MPI's mpirun stays when all its ranks are gone
        os.killpg(process.pid, signal.SIGKILL)
        _, said = process.communicate()
        print("  mpirun had to be ended")
    return ended, said


def trial(folder: Path, seed: int, expected: dict, longest: float, ranks: tuple, study: list) -> tuple[bool, int]:
    """Whether a run that is killed and resumed until it is done ends as it should, and how often it was killed."""
    rng, path, kills = random.Random(seed), folder / f"{seed}.h5", 0
    words: list[str | Path] = ["run", *study, "-q", "-o", path]
    while True:
        process = start(rng.choice(ranks), *words)
        struck(process, path, rng, longest)
        if not finish(process):
            break
        kills += 1
        repair_length(path)  # as resume does
        with h5py.File(path) as file:
            assert "rounds" in file
        words = ["resume", path, "-q"]
        if rng.random() < 0.5:
            break
    if kills and finish(process := start(rng.choice(ranks), "resume", path, "-q")):
        with h5py.File(path) as file:
            assert file.attrs["status"] == "finished", (process.returncode, process.stderr)
    same = content(path) == expected
    path.unlink()
    return same, kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ranks", default="3", help="numbers of ranks to choose from, comma-separated")
    parser.add_argument("--survive", type=int, default=0, help="runs that survive a dead client rank (Open MPI)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--asynchronous", action="store_true", help="an asynchronous run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, study = Path(name), AWAY if args.asynchronous else STUDY
        begun = time.monotonic()
        process = start(3, "run", *study, "-q", "-o", folder / "whole.h5")
        rounds_begun = opened(folder / "whole.h5")
        if code := finish(process):
            return code
        ended = time.monotonic()
        expected, longest = content(folder / "whole.h5"), ended - rounds_begun
        if args.survive:
            same = [survivor(folder, args.seed + k, expected, 0.8 * longest) for k in range(args.survive)]
            lost = sorted(seconds - (ended - begun) for _, seconds in same)[len(same) // 2]
            equal = sum(ok for ok, _ in same)
            runs = f"{equal} of {len(same)} runs of four ranks that lost one"
            print(f"{runs} equal the undisturbed one to the bit; median of seconds lost: {lost:.1f}")
            return int(equal != len(same))
        kills = trials = equal = 0
        while kills < args.kills:
            ranks = tuple(map(int, args.ranks.split(",")))
            same, more = trial(folder, args.seed + trials, expected, longest, ranks, study)
            trials, equal, kills = trials + 1, equal + same, kills + more
        print(f"{kills} kills in {trials} runs: {equal} of {trials} final files equal the undisturbed one to the bit")
    return int(equal != trials)


if __name__ == "__main__":
    sys.exit(main())
