"""Which kernels compute a run: numpy's, the compiled ones of the extra ``fast``, or those of a device."""

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.arrays import pytorch
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.traits import needs
from mpifed.kernels.compiled import compiling
from mpifed.kernels.torch_device import device
from mpifed.mpi.world import World
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.problem import Problem

INSTALL = "pip install 'mpifed[fast]'"
DENSE = ' computes with sparse data in memory alone, so it must be "auto" or "numpy"'


def choose(job: Job, world: World, data: Dataset, progress: Progress) -> str:
    """The kernels of a job on these data, as Setup has them; all ranks call it.

    Raises UserError, on all ranks, where those that are asked for are not to be had.
    """
    if job.config.kernels in DEVICES:
        if data.sparse and not isinstance(job.config.problem, LinearModel | Classifier):
            raise UserError(f'kernels = "{job.config.kernels}" is wrong: {job.config.problem.label()}{DENSE}')
        with world.agreeing():
            if world.hosting:
                device(job.config.kernels)  # UserError where there is none
        return job.config.kernels
    if job.config.kernels == "auto" and on_gpus(job.config, world):
        return "cuda"
    lacking = unable(job.config.problem, job.config.algorithm, data)
    if lacking and job.config.kernels == "compiled":
        raise UserError(f'kernels = "compiled" is wrong: there are none for {lacking}, so it must be "auto" or "numpy"')
    if lacking or job.config.kernels == "numpy":
        return "numpy"
    with world.agreeing():
        wish = wanted(job) if world.first else ""
    wish = world.share(wish)
    if wish == "numpy":
        return wish
    mistake = world.agree(compiling.failure() if world.hosting else None)
    if mistake is None:
        return "compiled"
    if wish == "auto":
        if world.first:
            progress.note(f"numpy computes, for numba cannot be used here: {mistake}")
        return "numpy"
    raise UserError(f"{world.share(demand(job))}, but numba cannot be used here: {mistake}")


def on_gpus(c: Experiment, world: World) -> bool:
    """Whether the problem asks for GPUs; where it leaves that open, whether all parts and all ranks have them."""
    wish = c.problem.gpu()
    if wish != "auto":
        return bool(wish)
    from mpifed.features.promises.feature import computes_on_devices

    if not computes_on_devices(c):
        return False
    there = not world.hosting or bool(pytorch().cuda.is_available())
    return world.agree(None if there else "a rank has none") is None


def unable(problem: Problem, algorithm: Algorithm, data: Dataset) -> str:
    """What there are no compiled kernels for; empty where there are.

    For sparse data there are those of matrices of second derivatives.
    """
    if data.columns is not None:
        return "samples with weights or offsets"
    if data.sparse and "hess" in needs(algorithm):
        return ""
    if not problem.compiles():
        return f"problem {problem.label()!r}"
    return "sparse data" if data.sparse else ""


def wanted(job: Job) -> str:
    """What rank 0 asks for: "numpy", "compiled" or, where the study leaves it open and numba is there, "auto"."""
    wish: str = job.config.kernels
    if job.before is not None:
        wish = str(job.before.attrs.get("kernels", "numpy"))  # a resumed run keeps what it began with
    if compiling.installed():
        return wish
    if wish == "compiled":
        raise UserError(f"{demand(job)}: {INSTALL}")
    return "numpy"


def demand(job: Job) -> str:
    """Why a run needs compiled kernels; rank 0 alone knows whether it is resumed."""
    if job.before is not None:
        return f"{job.before.path} began with compiled kernels and keeps them when it is resumed, which needs numba"
    return 'kernels = "compiled" needs numba'


def called(algorithm: Algorithm, data: Dataset) -> tuple[str, ...]:
    """The compiled kernels that a run of an algorithm on these data calls."""
    if data.sparse:
        return ("pairs",)
    return ("one_pass", "grams") if "hess" in needs(algorithm) else ("one_pass",)


def ready(dtype: str, kernels: tuple[str, ...], world: World, progress: Progress) -> None:
    """Load these kernels on every rank with clients.

    The first of them compiles those that are not in the cache, so that the others find them. Where there is no folder
    to keep them in, every rank compiles for itself. Rank 0 says so and needs no numba.
    """
    number, leads = np.dtype(dtype), world.rank == min(1, world.size - 1)
    found = [compiling.news(number, which) for which in kernels] if leads else []
    news = world.agree(next(filter(None, found), None))
    if news is not None and world.first:
        progress.note(news)
    if news is not None and leads and all(compiling.folder(dtype, which) is not None for which in kernels):
        for which in kernels:
            compiling.kernel(number, which)
    world.share(None)  # the others wait here
    if world.hosting:
        for which in kernels:
            compiling.kernel(number, which)


def recorded(kernels: str) -> dict[str, str]:
    """What the result file says of the kernels that compute."""
    found = {"kernels": kernels}
    if kernels == "compiled":
        found["numba"] = compiling.version()
    return found
