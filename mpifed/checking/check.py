"""The checks of every class, and the function that runs them with those of its family."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking import algorithms, components, problems
from mpifed.checking.algorithms import ROUNDING
from mpifed.checking.case import Case, difference, make_case
from mpifed.checking.families import StudyDict
from mpifed.checking.table import Check, CheckFailure, Inconclusive, Report, run_checks
from mpifed.checking.trace import NEEDS, CallRecorder, RecordingTransport, profiling, trace_rounds
from mpifed.core.component import Component
from mpifed.core.guards import is_user_class
from mpifed.core.plugins import MAIN_MODULE
from mpifed.core.promises import Supports, declared_promises
from mpifed.core.toml import to_toml, toml_value
from mpifed.data.sources.held import IN_PROGRAM
from mpifed.experiment.housing import build_federation
from mpifed.experiment.rounds import play_round
from mpifed.federation.participation.selection import Selection
from mpifed.mpi.launcher import LAUNCHERS, RANKS, read_launcher
from mpifed.results.result import load

PATIENCE = 120.0  # seconds for a run in a process of its own
ROUTINES = {  # family -> its methods in which the cause of a failure is likely
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


def check_returns(case: Case) -> str:
    """Test that the study runs and that the guards of a user's class find no mistake."""
    return f"{case.result.cr} rounds" + ("" if is_user_class(type(case.component)) else " of a class of mpifed's own")


def check_repeatable(case: Case) -> str:
    """Test that a second run has the same bits."""
    try:
        first = case.result
    except Exception:  # this is a check of its own
        raise Inconclusive("the run fails") from None
    text = difference(first, case.second_result)
    privacy = case.config.guarantee()
    if text and privacy is not None and privacy.holds:
        raise Inconclusive("its noise is secret: an option such as algorithm.noise_seed gives it a seed")
    if text:
        raise CheckFailure(
            f"two runs with the same seed: {text}; random numbers come from f.rng, fed.rng or mpifed.extend.stream, "
            "and what changes belongs to the state",
            *likely_methods(case),
        )
    return "the same bits"


def check_blocks(case: Case) -> str:
    """Test that clients alone in their blocks have the same bits as many in a block."""
    text = difference(case.reproducible_result(), case.run(block_bytes=1))
    if text:
        raise CheckFailure(
            f"with block_bytes = 1, so that every client is alone in its block: {text}; a client's row must not "
            "depend on the other rows",
            *likely_methods(case, of_clients=True),
        )
    return "block_bytes = 1: the same bits"


def check_ranks(case: Case) -> str:
    first = case.reproducible_result()
    require_importable(case)
    mpirun = launcher()
    if read_launcher()[0] is not None:
        raise Inconclusive("this process was itself started by a launcher of MPI")
    if mpirun is None:
        raise Inconclusive("there is no mpirun")
    out = case.folder / "ranks.h5"
    # on the command line and not in a file, so that paths stay relative to this folder
    words = [f"{key}={toml_value(value)}" for key, value in case.table.items()]
    count = min(3, case.spec.setup.m + 1)
    run_command([mpirun, "-n", str(count), sys.executable, "-m", "mpifed", "run", *words, "-q", "-o", str(out)])
    text = difference(first, load(out))
    if text:
        raise CheckFailure(f"one process and {count} ranks: {text}", *likely_methods(case))
    return f"{count} ranks: the same bits"


def check_resume(case: Case) -> str:
    """Test that half of the rounds, resumed in another process, give the bits of an uninterrupted run."""
    first = case.reproducible_result()
    require_importable(case)
    half = case.config.rounds // 2
    out = case.folder / "half.h5"
    if not half:
        raise Inconclusive("it takes at least 2 rounds")
    # in another process, because what a method keeps in a global variable is still there in this one
    case.run(path=out, rounds=half)
    run_command([sys.executable, "-m", "mpifed", "resume", str(out), f"rounds={case.config.rounds}", "-q"])
    text = difference(first, load(out))
    if text:
        raise CheckFailure(
            f"stopped after round {half} and resumed in another process: {text}; what a round keeps for the next one "
            "must be in the state",
            *likely_methods(case),
        )
    return f"stopped after round {half} of {case.config.rounds}: the same bits"


def likely_methods(case: Case, of_clients: bool = False) -> list[str]:
    """Return the methods in which a mistake is likely; ``round`` among them unless ``of_clients``."""
    family = case.entry.family.kind
    if family != "algorithms":
        return list(ROUTINES[family])
    return [*([] if of_clients else ["round"]), *trace_rounds(case, 1).rounds[0].methods]


def require_importable(case: Case) -> None:
    """Raise Inconclusive where another process could not find the classes or data of the study."""
    if case.config.data.label() in IN_PROGRAM:
        raise Inconclusive("data of mpifed.arrays and mpifed.table are in this program alone")
    if f"{MAIN_MODULE}:" in to_toml(case.table):
        raise Inconclusive("a class that a script or a notebook defines is in this program alone: put it into a file")


def run_command(words: list[str]) -> None:
    """Run a command in another process. CheckFailure where mpifed reports a mistake, else Inconclusive on failure."""
    # without the variables of a launcher: the child would take the rank and size of this process for its own
    environment = {key: value for key, value in os.environ.items() if key not in (*LAUNCHERS, *RANKS)}
    environment = ENVIRONMENT | environment | {"PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))}
    try:
        process = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Inconclusive(f"{Path(words[0]).name} did not end: {error}") from None
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        reported = next((line.partition("mpifed: ")[2] for line in lines if "mpifed: " in line), "")
        if reported:
            raise CheckFailure(f"{'on ranks' if '-n' in words else 'in another process'}: {reported}")
        raise Inconclusive(f"{Path(words[0]).name} ended with {process.returncode}: {' '.join(lines[-1:])}")


def launcher() -> str | None:
    """Return the path of mpirun: the one beside this Python, else the first on the path."""
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.exists() else shutil.which("mpirun")


OF_DATA = NEEDS | {name: name for name in ("value", "grad", "value_grad")}  # they depend on a client's samples


def require_claim(case: Case, promise: Supports, words: str) -> None:
    """Raise Inconclusive unless a class declares a promise."""
    if not declared_promises(case.component) & promise:
        raise Inconclusive(f"it does not say that it keeps {words}: supports = mpifed.extend.Supports.{words.upper()}")


def check_tensors(case: Case) -> str:
    """Compare the models of a run with PyTorch's tensors with those of numpy's arrays."""
    require_claim(case, Supports.DEVICES, "devices")
    if find_spec("torch") is None:
        raise Inconclusive("PyTorch is not installed")
    first = case.reproducible_result()
    text = difference(first, case.run(kernels="torch"), ROUNDING)
    if text:
        raise CheckFailure(f"with tensors of PyTorch in place of arrays: {text}", *likely_methods(case))
    return "tensors of PyTorch: the same to rounding"


def check_private_start(case: Case) -> str:
    """Test that before round one no result of the samples of a client is requested."""
    require_claim(case, Supports.PRIVACY, "privacy")
    algorithm = case.config.algorithm
    case.host.join()
    fed = build_federation(case.config, RecordingTransport(case.host), case.spec)
    watch = CallRecorder(case, fed, OF_DATA)
    with profiling(watch):
        play_round(algorithm, fed, 0, None, 0)
    for name, method in watch.callers.items():
        raise CheckFailure(
            f"asks clients for f.{name} before round one, which no noise hides: take it from an option", method
        )
    return "nothing is asked of samples before round one"


def check_private_selector(case: Case) -> str:
    """Test that the selector asks clients for no number of their data."""
    require_claim(case, Supports.PRIVACY, "privacy")
    parts = case.spec
    if not parts.selector.supported_promises(parts.setup.m).supports & Supports.CLIENTS:
        raise CheckFailure("its Selector asks clients for numbers of their data", "selector")
    return "its selector asks clients for nothing"


EVERY: list[Check] = [
    ("what it returns", check_returns),
    ("two runs, same bits", check_repeatable),
    ("blocks of other sizes", check_blocks),
    ("1 and 3 ranks", check_ranks),
    ("stopped and resumed", check_resume),
]
FAMILIES: dict[str, list[Check]] = {"algorithms": algorithms.CHECKS, "problems": problems.CHECKS, **components.CHECKS}
LAST: list[Check] = [("on tensors", check_tensors)]
PRIVATE: dict[str, list[Check]] = {
    Algorithm.kind: [("privacy before round one", check_private_start)],
    Selection.kind: [("privacy of selections", check_private_selector)],
}


def checks_of(cls: type[Component]) -> list[Check]:
    return [*EVERY, *FAMILIES[cls.kind], *LAST, *PRIVATE.get(cls.kind, [])]


def check(cls: type[Component], options: StudyDict, table: StudyDict) -> Report:
    """Check a class with these options, name included, in the study of a table, completed where it is silent.

    Raises UserError for a mistake in the table.
    """
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(cls, options, table, Path(folder))
        return Report(case.title, list(run_checks(checks_of(cls), case)))
