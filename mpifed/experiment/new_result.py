"""What a run's result file says of it before the first round."""

from typing import Any

from mpifed.experiment.computers import FIELD, computed_by, different, earlier, otherwise, sparse_on_gpu
from mpifed.experiment.config import Experiment
from mpifed.experiment.job import Job
from mpifed.experiment.notes import described, drawn, notes, redrawn, without_effect
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.resume import forget_end
from mpifed.features.guarantee.prepared_data import levels
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder


def new_recorder(job: Job, world: World, parts: Prepared) -> Recorder:
    """The result file of a job, with the rounds up to its checkpoint."""
    again = redrawn(job.before, job.saved)
    before = None if job.saved is None else job.before
    computed = computed_by(parts)
    past = earlier(before)
    new = otherwise(computed, job.before, job.saved)
    attributes = {
        "config": job.config.toml(),
        "seed": job.config.seed,
        "features": parts.data.n,
        "ranks": world.size,
        "mpi_library": world.library,
        "block_bytes": parts.block.bytes,
        "block_bytes_because": parts.block.reason,
        **computed,
        "changed": " ".join(job.config.changed()),
        **private(job.config, again),
        **described(parts.setup.weights),
        **({FIELD: "\n".join([*past, *new])} if past or new else {}),
        "notes": "\n".join([*notes(job.config, parts.setup.m), *past, *circumstances(job, parts)]),
    }
    last = -1 if job.saved is None else job.saved.round
    if before is not None:
        forget_end(before, job.config, last)
    recorder = Recorder(job.path, attributes, parts.setup.m, job.force or job.before is not None, before, last)
    recorder.at_once = "rounds_redrawn" in attributes  # for the uploads of all rounds to be counted after a crash
    return recorder


def circumstances(job: Job, parts: Prepared) -> list[str]:
    """What a user should know of a run's options that are too large, of its graph, its data and its machines."""
    sizes = without_effect(job.config, parts.data.sizes, parts.setup.start.size)
    kernels = [*different(parts.blas, parts.devices), *sparse_on_gpu(parts)]
    resumed = otherwise(computed_by(parts), job.before, job.saved)
    told = [*levels(job.config, parts.data), *parts.data.notes]
    return [*sizes, *drawn(parts.setup.weights), *told, *kernels, *resumed]


def private(config: Experiment, again: int) -> dict[str, Any]:
    """The root attributes that say what uploads guarantee, where the algorithm has noise; ``again``: rounds redrawn."""
    privacy = config.algorithm.privacy()
    if privacy is None:
        return {}
    return {"privacy": str(privacy), **({"rounds_redrawn": again} if privacy.holds else {})}
