"""A SLURM for the tests: the one that answers, or one of emulated nodes on this machine; its jobs."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.commands import execute

HERE = Path(__file__).parent
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}
OVER |= {"BOOT_FAIL", "DEADLINE", "PREEMPTED"}


class Job(NamedTuple):
    """What scontrol says of a job that is over, and its log."""

    state: str
    restarts: int
    log: str


class Cluster:
    """Jobs are submitted from ``folder``, which all nodes see; ``emulated``: the nodes are this machine."""

    def __init__(self, folder: Path, emulated: bool, variables: dict[str, str]) -> None:
        self.folder = folder
        self.emulated = emulated
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.variables = {"PATH": path, "VENV": sys.prefix, **variables}
        self.jobs: list[str] = []

    def ask(self, *command: str | Path, timeout: float = 60, **more: str) -> str:
        done = execute(command, timeout, self.folder, **self.variables, **more)
        assert done.code == 0, done
        return done.out

    def mpifed(self, *words: str | Path) -> str:
        """What a command of mpifed says."""
        return self.ask(sys.executable, "-m", "mpifed", *words)

    def run(self, *words: str | Path, timeout: float = 120, **variables: str) -> Job:
        """A new job, when it is over."""
        (done,) = self.wait(self.submit(*words, **variables), timeout)
        return done

    def submit(self, *words: str | Path, **variables: str) -> str:
        """The id of a new job."""
        job = self.ask("sbatch", "--parsable", *words, **variables).strip().partition(";")[0]
        self.jobs.append(job)
        return job

    def show(self, job: str) -> list[dict[str, str]]:
        """A table for each task of an array, and for the job itself where it is none."""
        lines = self.ask("scontrol", "show", "job", "-o", job).splitlines()
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines if line]

    def wait(self, job: str, timeout: float = 120) -> list[Job]:
        """All tasks of a job when they are over; when the time is, the job is cancelled and the test fails."""
        self.until(job, lambda: all(task["JobState"] in OVER for task in self.show(job)), timeout)
        return [Job(task["JobState"], int(task["Restarts"]), self.log(task)) for task in self.show(job)]

    def until(self, job: str, done: Callable[[], bool], timeout: float = 60) -> None:
        deadline = time.monotonic() + timeout
        while not done():
            if time.monotonic() > deadline:
                self.ask("scancel", job)
                pytest.fail(f"job {job} took more than {timeout} s\n" + "\n".join(map(self.log, self.show(job))))
            time.sleep(0.5)

    def log(self, task: dict[str, str]) -> str:
        file = Path(task["StdOut"])
        return file.read_text("utf-8") if file.exists() else ""

    def end(self) -> None:
        environment = {**os.environ, **self.variables}
        subprocess.run(["scancel", *self.jobs], env=environment, timeout=30, check=False, capture_output=True)


def answers() -> bool:
    """Whether there is a SLURM to talk to."""
    if shutil.which("scontrol") is None:
        return False
    done = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, timeout=30, check=False)
    return "is UP" in done.stdout


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A SLURM with at least two nodes; the tests are skipped where there is none and none can be started."""
    if answers():
        cluster = Cluster(folder, False, {})
        yield cluster
        cluster.end()
        return
    port = 20_000 + 4 * (os.getpid() % 3000)  # those of two sessions differ
    sandbox = {"SLURM_SANDBOX": str(folder / "slurm"), "SLURM_SANDBOX_PORT": str(port)}
    try:
        done = execute([HERE / "slurm-up.sh", "2", "4"], 300, **sandbox)
        if done.code:
            why = done.err.strip().splitlines() or ["no reason"]
            pytest.skip(f"no SLURM answers, and none could be started: {why[-1]}")
        name, conf = done.out.removeprefix("export ").strip().split("=", 1)
        yield Cluster(folder, True, {name: conf})
    finally:
        execute([HERE / "slurm-down.sh", "--purge"], 120, **sandbox)
