"""The choice of kernels for a run: numpy's, the compiled ones of the extra ``fast``, or those of a device."""

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.arrays import import_torch
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.experiment.config import Job
from mpifed.experiment.progress import Progress
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.traits import required_methods
from mpifed.kernels.compiled import compiling
from mpifed.kernels.torch_device import kernel_device
from mpifed.mpi.world import World
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.problem import Problem

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
    from mpifed.features.promises.feature import computes_on_devices

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
