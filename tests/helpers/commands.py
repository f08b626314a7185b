"""Start mpifed in one process or under mpirun, always with a timeout."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mpifed.cli.main import main
from mpifed.mpi.launcher import LAUNCHERS, RANKS

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def execute(command: Sequence[str | Path], timeout: float = 60, cwd: Path | None = None, **variables: str) -> Outcome:
    """Run a command; when the time is over its whole process group is killed and the test fails."""
    process = background(command, variables, **PIPES, stdin=subprocess.DEVNULL, cwd=cwd)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"{' '.join(map(str, command))} did not end within {timeout} s\n{out}\n{err}")
    return Outcome(process.returncode, out, err)


def background(command: Sequence[str | Path], variables: Mapping[str, str] = {}, **options: Any) -> subprocess.Popen:
    """A process beside this one, in a group of its own, with these options of Popen."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS, **variables}
    words = [str(word) for word in command]
    return subprocess.Popen(words, env=environment, start_new_session=True, text=True, **options)


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
# more ranks than cores (Open MPI 5 and 4), and root in a container: Open MPI asks for both to be said
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def mpirun(ranks: int, *words: str | Path) -> list[str | Path]:
    """The command that starts ``python words`` on so many ranks, with the mpirun of this environment."""
    beside = Path(sys.executable).parent / "mpirun"
    launcher = beside if beside.exists() else shutil.which("mpirun")
    if launcher is None:
        pytest.skip("there is no mpirun: install the extra mpich or openmpi, or the MPI of the system")
    return [launcher, "-n", str(ranks), sys.executable, *words]


def mpifed(
    *words: str | Path,
    ranks: int | None = None,
    process: bool = False,
    timeout: float = 60,
    cwd: Path | None = None,
    **variables: str,
) -> Outcome:
    """Run ``mpifed words``: in this process, in one of its own, or under mpirun where ``ranks`` is given.

    A test that is itself one of several ranks runs the command together with the others.
    """
    if ranks is None and not process and not variables:
        return called(words, cwd)
    command = ["-m", "mpifed", *words]
    whole = [sys.executable, *command] if ranks is None else mpirun(ranks, *command)
    return execute(whole, timeout, cwd, **variables)


def called(words: Sequence[str | Path], cwd: Path | None = None) -> Outcome:
    """Run a command of mpifed in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd or Path.cwd()):
        code = main([str(word) for word in words])
    return Outcome(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """What runs in here is interrupted, also where it waits for a pipe, and the test fails when the time is over."""

    def late(*_: object) -> None:
        raise AssertionError(f"this did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """On one of several ranks: what runs in here knows nothing of the others."""
    hidden = {name: os.environ.pop(name) for name in (*LAUNCHERS, *RANKS) if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)
