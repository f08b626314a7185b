"""What a run's result file says of it before the first round."""

from mpifed.core.errors import UserError
from mpifed.experiment.computers import FIELD, computed_by, different, earlier, otherwise
from mpifed.experiment.job import Job
from mpifed.experiment.notes import notes, redrawn, without_effect
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.resume import forget_end
from mpifed.mpi.world import World
from mpifed.results.columns import COLUMNS, MEASURES, SCALES
from mpifed.results.recorder import Recorder


def new_recorder(job: Job, world: World, parts: Prepared) -> Recorder:
    """The result file of a job, with the rounds up to its checkpoint. UserError for a metric that has the name of a
    column which is none of measures."""
    for name in job.config.problem.measured():
        if name in {*COLUMNS, *SCALES} - {*MEASURES}:
            raise UserError(
                f"the metric {name} of the problem is wrong: there is a column {name}, so rename the function"
            )
    again = redrawn(job.before, job.saved)
    before = None if job.saved is None else job.before
    computed = computed_by(parts)
    past = earlier(before)
    new = otherwise(computed, job.before, job.saved)
    own = {name: value for feature in parts.features for name, value in feature.attributes(again).items()}
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
        **own,
        **({FIELD: "\n".join([*past, *new])} if past or new else {}),
        "notes": "\n".join([*notes(job.config, parts.setup.m, parts.features), *past, *circumstances(job, parts)]),
    }
    last = -1 if job.saved is None else job.saved.round
    if before is not None:
        forget_end(before, job.config, last)
    recorder = Recorder(job.path, attributes, parts.setup.m, job.force or job.before is not None, before, last)
    recorder.at_once = "rounds_redrawn" in attributes  # for the uploads of all rounds to be counted after a crash
    return recorder


def circumstances(job: Job, parts: Prepared) -> list[str]:
    """What a user should know of options that are too large, of the data, and of what computes."""
    sizes = without_effect(job.config, parts.data.sizes, parts.setup.start.size)
    kernels = different(parts.blas, parts.devices)
    return [*sizes, *parts.data.notes, *kernels, *otherwise(computed_by(parts), job.before, job.saved)]
