"""Hardware and software of a run on which the last bits depend: kernels, versions, processors and devices.

Kernels are chosen for a run: numpy's, the compiled ones of the extra ``fast``, or those of a device. The result file
records what computed; a note says where ranks differ, and where a run is resumed with others.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.arrays import import_torch
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.experiment.checkpoint import StoredCheckpoint
from mpifed.experiment.config import Job
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.progress import Progress
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.traits import required_methods
from mpifed.kernels import compiling, torch_device
from mpifed.kernels.torch_device import kernel_device
from mpifed.mpi.world import World
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.problem import Problem
from mpifed.results import provenance
from mpifed.results.result import RunRecord

UNEQUAL = {"blas": "BLAS and its kernels, which depend on the processor,", "device": "devices of PyTorch"}
COMPARED = {  # attribute of a result file -> its name in a note
    "kernels": "kernels",
    "numba": "numba",
    "torch": "torch",
    "device": "device",
    "numpy": "numpy",
    "blas": "BLAS",
}
FIELD = "computed_otherwise"  # attribute: the changes at each resumption
INSTALL = "pip install 'mpifed[fast]'"
DENSE = ' computes with sparse data in memory alone, so it must be "auto" or "numpy"'


def choose_kernels(job: Job, world: World, data: Dataset, progress: Progress) -> str:
    """Choose the kernels of a job on these data, as Setup has them; all ranks call it.

    Raises UserError, on all ranks, where the requested kernels are not available.
    """
    if job.config.kernels in DEVICES:
        if data.sparse and not isinstance(job.config.problem, LinearModel | Classifier):
            raise UserError(f'kernels = "{job.config.kernels}" is wrong: {job.config.problem.label()}{DENSE}')
        with world.agreeing():
            if world.has_clients:
                kernel_device(job.config.kernels)  # UserError where there is none
        return job.config.kernels
    if job.config.kernels == "auto" and runs_on_gpus(job.config, world):
        return "cuda"
    missing = missing_kernels(job.config.problem, job.config.algorithm, data)
    if missing and job.config.kernels == "compiled":
        raise UserError(f'kernels = "compiled" is wrong: there are none for {missing}, so it must be "auto" or "numpy"')
    if missing or job.config.kernels == "numpy":
        return "numpy"
    with world.agreeing():
        requested = requested_kernels(job) if world.first else ""
    requested = world.share(requested)
    if requested == "numpy":
        return requested
    failure = world.agree(compiling.compile_failure() if world.has_clients else None)
    if failure is None:
        return "compiled"
    if requested == "auto":
        if world.first:
            progress.note(f"numpy computes, for numba cannot be used here: {failure}")
        return "numpy"
    raise UserError(f"{world.share(numba_requirement(job))}, but numba cannot be used here: {failure}")


def runs_on_gpus(config: Experiment, world: World) -> bool:
    """Return True if the problem asks for GPUs, or leaves it open and all parts and all ranks have them."""
    requested = config.problem.gpu()
    if requested != "auto":
        return bool(requested)
    from mpifed.engine.promises.feature import computes_on_devices

    if not computes_on_devices(config):
        return False
    available = not world.has_clients or bool(import_torch().cuda.is_available())
    return world.agree(None if available else "a rank has none") is None


def missing_kernels(problem: Problem, algorithm: Algorithm, data: Dataset) -> str:
    """Return the part for which there are no compiled kernels; "" where all have them.

    For sparse data only the kernels of matrices of second derivatives exist.
    """
    if data.columns is not None:
        return "samples with weights or offsets"
    if data.sparse and "hess" in required_methods(algorithm):
        return ""
    if not problem.compiles():
        return f"problem {problem.label()!r}"
    return "sparse data" if data.sparse else ""


def requested_kernels(job: Job) -> str:
    """Return rank 0's request: "numpy", "compiled" or, if the study leaves it open and numba is there, "auto"."""
    requested: str = job.config.kernels
    if job.before is not None:
        requested = str(job.before.attrs.get("kernels", "numpy"))  # a resumed run keeps what it began with
    if compiling.has_numba():
        return requested
    if requested == "compiled":
        raise UserError(f"{numba_requirement(job)}: {INSTALL}")
    return "numpy"


def numba_requirement(job: Job) -> str:
    """Return the reason why a run needs numba; only rank 0 knows whether it is resumed."""
    if job.before is not None:
        return f"{job.before.path} began with compiled kernels and keeps them when it is resumed, which needs numba"
    return 'kernels = "compiled" needs numba'


def compiled_kernels(algorithm: Algorithm, data: Dataset) -> tuple[str, ...]:
    """Return the compiled kernels that an algorithm calls on these data."""
    if data.sparse:
        return ("pairs",)
    return ("one_pass", "grams") if "hess" in required_methods(algorithm) else ("one_pass",)


def load_kernels(dtype: str, kernels: tuple[str, ...], world: World, progress: Progress) -> None:
    """Load these kernels on every rank with clients.

    The first of these ranks compiles the kernels missing from the cache, so that the others find them. Where there is
    no folder to keep them in, every rank compiles for itself. Rank 0 notes this and needs no numba.
    """
    number, leads = np.dtype(dtype), world.rank == min(1, world.size - 1)
    messages = [compiling.compile_note(number, which) for which in kernels] if leads else []
    news = world.agree(next(filter(None, messages), None))
    if news is not None and world.first:
        progress.note(news)
    if news is not None and leads and all(compiling.cache_folder(dtype, which) is not None for which in kernels):
        for which in kernels:
            compiling.get_kernel(number, which)
    world.share(None)  # the others wait here
    if world.has_clients:
        for which in kernels:
            compiling.get_kernel(number, which)


def kernel_attributes(kernels: str) -> dict[str, str]:
    """Return the attributes of the result file about the kernels."""
    attributes = {"kernels": kernels}
    if kernels == "compiled":
        attributes["numba"] = compiling.numba_version()
    return attributes


def gather_hardware(parts: PreparedRun, world: World) -> PreparedRun:
    """Add BLAS and devices of all ranks to ``parts`` at rank 0; all ranks call it."""
    rows = world.collect((provenance.describe_blas(), local_device(parts)))
    blas, devices = (tuple([row[k] for row in rows]) for k in range(2))
    return parts._replace(blas=blas, devices=devices)


def local_device(parts: PreparedRun) -> str:
    """Return the device on which PyTorch computes for the clients of this rank; "" without clients or PyTorch."""
    if parts.host is None:
        return ""
    setup = parts.setup
    used = kernel_device(setup.kernels) if setup.kernels in DEVICES else setup.problem.computer()
    return "" if used is None else torch_device.describe_device(used)


def hardware_attributes(parts: PreparedRun) -> dict[str, Any]:
    """Return the root attributes of a result that record kernels, BLAS and devices."""
    setup = parts.setup
    attributes: dict[str, Any] = {**kernel_attributes(setup.kernels), "blas": parts.blas[0]}
    used = next(filter(None, parts.devices), "")
    if used:
        attributes |= {"torch": import_torch().__version__, "device": used}
    return attributes | setup.problem.run_attributes(parts.data.n, setup.start)


def hardware_differences(blas: Sequence[str], devices: Sequence[str]) -> list[str]:
    """Return a sentence for each of BLAS and PyTorch devices that differs between ranks."""
    sentences = []
    for name, counts in {"blas": Counter(blas), "device": Counter(filter(None, devices))}.items():
        if len(counts) > 1:
            each = ", ".join(f"{value or 'one that does not tell'} on {number}" for value, number in counts.items())
            sentences.append(
                f"{UNEQUAL[name]} differ between the {counts.total()} ranks: {each} of them; the last bits of this run "
                "depend on which rank has which clients"
            )
    return sentences


def hardware_changes(now: Mapping[str, Any], before: RunRecord | None, saved: StoredCheckpoint | None) -> list[str]:
    """Return a sentence where a run continues with other kernels, versions or devices than its file records.

    Attributes that the file lacks, as one of an older version may, are not compared.
    """
    if saved is None or before is None:
        return []
    now = {"numpy": np.__version__, **now}
    pairs = [(COMPARED[name], str(before.attrs.get(name, "")), str(now.get(name, "none"))) for name in COMPARED]
    if "group" in before.attrs:
        pairs.append(("clients", group_text(before.attrs["group"]), group_text(now.get("group"))))
    changes = [f"{name} ({was} → {now or 'unknown'})" for name, was, now in pairs if was and was != now]
    if not changes:
        return []
    return [
        f"from round {saved.round + 1} on this run is computed otherwise, and its last bits depend on that: "
        f"{', '.join(changes)}"
    ]


def earlier_changes(before: RunRecord | None) -> list[str]:
    """Return the sentences of earlier resumptions."""
    return [] if before is None else str(before.attrs.get(FIELD, "")).splitlines()


def group_text(group: int | None) -> str:
    """Return how many clients are computed at once, as text."""
    return f"in groups of {group}" if group is not None and group > 1 else "one at a time"
