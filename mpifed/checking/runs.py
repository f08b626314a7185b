"""Checks of every class: its study runs, with the same bits twice, in other blocks, on ranks, and when resumed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mpifed.checking.case import Case, difference
from mpifed.checking.table import Check, Found, Open, place
from mpifed.checking.trace import traced
from mpifed.core.guards import own
from mpifed.core.plugins import HERE
from mpifed.core.toml import to_toml, toml_value
from mpifed.data.sources.held import IN_PROGRAM
from mpifed.mpi.launcher import LAUNCHERS, RANKS, announced
from mpifed.results.result import load

PATIENCE = 120.0  # seconds for a run in a process of its own
ROUTINES = {  # of a family: the methods in which a mistake of the checks below is to be looked for
    "problems": ("value_grad", "slope", "loss"),
    "data": ("load",),
    "partitions": ("deal",),
    "selections": ("selector",),
    "steps": ("gamma",),
    "solvers": ("minimise",),
    "optimizers": ("direction",),
    "server_optimizers": ("direction",),
    "compressors": ("message",),
    "distributions": ("draw",),
    "graphs": ("edges",),
    "attacks": ("alone", "together", "changed"),
    "robust_means": ("mean",),
}
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5: more ranks than cores
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # Open MPI 4: the same
}


def returns(case: Case) -> str:
    """The study runs, and the guards of a user's class find nothing."""
    return f"{case.result.cr} rounds" + ("" if own(type(case.component)) else " of a class of mpifed's own")


def twice(case: Case) -> str:
    try:
        first = case.result
    except Exception:  # which is a check of its own
        raise Open("the run fails") from None
    apart = difference(first, case.again)
    privacy = case.config.algorithm.privacy()
    if apart and privacy is not None and privacy.holds:
        raise Open("its noise is secret: an option such as algorithm.noise_seed gives it a seed")
    if apart:
        raise Found(
            f"two runs with the same seed: {apart}; random numbers come from f.rng, fed.rng or mpifed.stream, and what "
            "changes belongs to the state",
            culprit(case),
        )
    return "the same bits"


def blocks(case: Case) -> str:
    """Clients in one block each have the same bits as many in a block."""
    apart = difference(case.repeated(), case.run(block_bytes=1))
    if apart:
        raise Found(
            f"with block_bytes = 1, so that every client is alone in its block: {apart}; a client's row must not "
            "depend on the other rows",
            culprit(case, of_clients=True),
        )
    return "block_bytes = 1: the same bits"


def ranks(case: Case) -> str:
    first = case.repeated()
    refuse_unnamed(case)
    mpirun = launcher()
    if announced()[0] is not None:
        raise Open("this process was itself started by a launcher of MPI")
    if mpirun is None:
        raise Open("there is no mpirun")
    out = case.folder / "ranks.h5"
    # on the command line and not in a file, so that paths stay relative to this folder
    words = [f"{key}={toml_value(value)}" for key, value in case.table.items()]
    count = min(3, case.prepared.setup.m + 1)
    outside([mpirun, "-n", str(count), sys.executable, "-m", "mpifed", "run", *words, "-q", "-o", str(out)])
    apart = difference(first, load(out))
    if apart:
        raise Found(f"one process and {count} ranks: {apart}", culprit(case))
    return f"{count} ranks: the same bits"


def resumed(case: Case) -> str:
    """Half of the rounds, and the others in another process, have the bits of all rounds in one go."""
    first = case.repeated()
    refuse_unnamed(case)
    half = case.config.rounds // 2
    out = case.folder / "half.h5"
    if not half:
        raise Open("it takes at least 2 rounds")
    # in another process, because what a method keeps in a global variable is still there in this one
    case.run(path=out, rounds=half)
    outside([sys.executable, "-m", "mpifed", "resume", str(out), f"rounds={case.config.rounds}", "-q"])
    apart = difference(first, load(out))
    if apart:
        raise Found(
            f"stopped after round {half} and resumed in another process: {apart}; what a round keeps for the next one "
            "must be in the state",
            culprit(case),
        )
    return f"stopped after round {half} of {case.config.rounds}: the same bits"


def culprit(case: Case, of_clients: bool = False) -> str:
    """File and line of the methods in which a mistake is likely; of a method ``round`` too, if not ``of_clients``."""
    kind = case.place.family.kind
    if kind != "algorithms":
        return place(case.component, *ROUTINES[kind])
    names = traced(case, 1).rounds[0].methods
    return place(case.component, *([] if of_clients else ["round"]), *names)


def refuse_unnamed(case: Case) -> None:
    """Open where another process could not find the classes or data of the study."""
    if case.config.data.label() in IN_PROGRAM:
        raise Open("data of mpifed.arrays and mpifed.table are in this program alone")
    if f"{HERE}:" in to_toml(case.table):
        raise Open("a class that a script or a notebook defines is in this program alone: put it into a file")


def outside(words: list[str]) -> None:
    """Run a command in a process of its own. Found where mpifed says what is wrong, Open where nothing could start."""
    # as if no launcher had started this process: the child would take its rank and its size for its own
    environment = {key: value for key, value in os.environ.items() if key not in (*LAUNCHERS, *RANKS)}
    environment = ENVIRONMENT | environment | {"PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))}
    try:
        done = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Open(f"{Path(words[0]).name} did not end: {error}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next((line.partition("mpifed: ")[2] for line in lines if "mpifed: " in line), "")
        if said:
            raise Found(f"{'on ranks' if '-n' in words else 'in another process'}: {said}")
        raise Open(f"{Path(words[0]).name} ended with {done.returncode}: {' '.join(lines[-1:])}")


def launcher() -> str | None:
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.exists() else shutil.which("mpirun")


EVERY: list[Check] = [
    ("what it returns", returns),
    ("two runs, same bits", twice),
    ("blocks of other sizes", blocks),
    ("1 and 3 ranks", ranks),
    ("stopped and resumed", resumed),
]
