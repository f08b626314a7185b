"""Whether kernels of the extra ``cuda`` compute the gradients of a run on a GPU, or PyTorch's products do."""

import importlib.metadata
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.data.base import Dataset
from mpifed.data.cuda import device
from mpifed.data.cuda.layout import Shape, fits
from mpifed.data.device_block import coarse
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.federation.setup import LAUNCHED
from mpifed.mpi.world import World

FIELD = "numba_cuda"  # the attribute of a result file with the version of numba-cuda


def launched(job: Job, world: World, data: Dataset, progress: Progress, where: Any) -> str:
    """LAUNCHED where they do, on every rank with clients, otherwise "cuda"; all ranks call it.

    ``where`` is the device of PyTorch on this rank, for which the kernels are loaded or compiled.

    UserError where a run that is resumed began with them and they are not to be had.
    """
    with world.agreeing():
        wish = wanted(job) if world.first else ""
    wish = world.share(wish)
    if wish == "cuda" or not computable(job, data):
        return "cuda"
    mistake = world.agree(device.unready(job.config.dtype, where.index or 0) if world.hosting else None)
    if mistake is None:
        return LAUNCHED
    if wish == LAUNCHED:
        raise UserError(f"{world.share(demand(job))}, which cannot be used here: {mistake}")
    if world.first:
        progress.note(f"PyTorch alone computes on the GPU, for numba-cuda cannot be used here: {mistake}")
    return "cuda"


def wanted(job: Job) -> str:
    """What rank 0 asks for: LAUNCHED or "cuda" as the run that is resumed, otherwise "auto" where numba-cuda is."""
    wish = "auto"
    if job.before is not None:
        wish = LAUNCHED if FIELD in job.before.attrs else "cuda"
    if device.installed() or wish == "cuda":
        return wish
    if wish == LAUNCHED:
        raise UserError(f"{demand(job)}: pip install 'mpifed[cuda]'")
    return "cuda"


def demand(job: Job) -> str:
    """Why a run that is resumed needs them; rank 0 alone knows its path."""
    path = "" if job.before is None else job.before.path
    return f"{path} began with kernels of numba-cuda and keeps them when it is resumed"


def computable(job: Job, data: Dataset) -> bool:
    """Whether there are kernels for the problem and the samples, and room for the largest client."""
    problem = job.config.problem
    if data.sparse or not problem.launches():
        return False
    model = problem.dim(data)
    classes = 1 if model == data.n else data.classes
    rows = coarse(int(-(-np.max(data.sizes) // 4) * 4))
    return fits(Shape(rows, data.n, classes, model), np.dtype(job.config.dtype).itemsize)


def version() -> str:
    """The version of numba-cuda, which is not imported."""
    return importlib.metadata.version("numba-cuda")
