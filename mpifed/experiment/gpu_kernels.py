"""What kernels of the extra ``cuda`` compute in a run on a GPU: gradients, whole local steps, or nothing."""

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
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.federation.setup import LAUNCHED, Setup
from mpifed.mpi.world import World
from mpifed.problems.base import Problem
from mpifed.problems.launched import form_of

FIELD = "numba_cuda"  # the attribute of a result file with the version of numba-cuda
STEPS = "local_steps"  # the one that says how many launches take local steps


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
    kernels = [*device.RUNS]
    if stepping(job.config.algorithm, job.config.problem) is not None:
        kernels += device.STEPS
    mistake = world.agree(device.unready(job.config.dtype, where.index or 0, kernels) if world.hosting else None)
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


def stepping(method: Method, problem: Problem) -> Method | None:
    """The method with all local steps of a round in one launch; None where it takes them one after the other."""
    if form_of(problem) is None:
        return None
    from mpifed.algorithms.launched.choice import launched as in_one_launch

    return in_one_launch(method)


def local_steps(setup: Setup) -> Method | None:
    """The same for the clients of a run, whose f_i are those of the problem, without factors."""
    if setup.kernels != LAUNCHED or setup.local is not Local:
        return None
    return stepping(setup.algorithm, setup.problem)


def recorded(setup: Setup) -> dict[str, str]:
    """What the result file says of the local steps, where a launch takes all those of a round."""
    return {} if local_steps(setup) is None else {STEPS: "in one launch"}


def version() -> str:
    """The version of numba-cuda, which is not imported."""
    return importlib.metadata.version("numba-cuda")
