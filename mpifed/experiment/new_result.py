"""What is said of a run before its first round: in its result file, and to the user."""

from collections.abc import Iterable

from mpifed.compressors.compressor import above
from mpifed.core.errors import UserError
from mpifed.core.roles import left_out
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import Saved
from mpifed.experiment.computers import FIELD, computed_by, different, earlier, otherwise
from mpifed.experiment.job import Job
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.resume import forget_end
from mpifed.features.feature import Feature
from mpifed.features.settings import Experiment
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.traits import Takes, needs
from mpifed.mpi.world import World
from mpifed.results.columns import COLUMNS, MEASURES, SCALES
from mpifed.results.recorder import Recorder
from mpifed.results.result import Result

SELECTING = {
    Takes.ALL: "; selection has no effect",
    Takes.SELECTED_OR_ALL: " in some rounds; selection decides which ones reply in the others",
    Takes.SELECTED_AND_ALL: "; selection decides what each computes, not which ones reply",
}


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
    past, new = [], []
    if before is not None:
        past = earlier(before)
        new = otherwise(computed, before, job.saved)
    own = {name: value for feature in parts.features for name, value in feature.attributes(again).items()}
    attributes = {
        "config": job.config.toml(),
        "seed": job.config.seed,
        "features": parts.data.n,
        **evaluated(parts),
        "ranks": world.size,
        "mpi_library": world.library,
        "block_bytes": parts.block.bytes,
        "block_bytes_reason": parts.block.reason,
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


def evaluated(parts: Prepared) -> dict[str, str | int]:
    """The attributes that say which columns are over samples, over which, and how many clients have none of these."""
    columns = Evaluation(parts.setup).over_samples()
    if not columns and not parts.setup.problem.of_clients():
        return {}
    return {"evaluated": " ".join(columns), "evaluated_on": parts.setup.role.name, "missing": parts.setup.role.missing}


def circumstances(job: Job, parts: Prepared) -> list[str]:
    """What a user should know of options that are too large, of data, of what is evaluated and of what computes."""
    sizes = without_effect(job.config, parts.data.sizes, parts.setup.start.size)
    kernels = different(parts.blas, parts.devices) if len(parts.blas) > 1 else []
    resumed = [] if job.saved is None else otherwise(computed_by(parts), job.before, job.saved)
    others = ["the numbers of clients"] if job.config.evaluate.clients else []
    missing = left_out(parts.setup.role, parts.setup.m, Evaluation(parts.setup).over_samples() or others)
    return [*sizes, *parts.data.notes, *missing, *kernels, *resumed]


def notes(config: Experiment, m: int, features: Iterable[Feature]) -> list[str]:
    """Sentences about a run with m clients: what theory does not cover, those of its features, and what [selection]
    leaves open."""
    own = [note for feature in features for note in feature.notes()]
    return [*filter(None, [config.algorithm.advice(m)]), *own, *selecting(config)]


def without_effect(config: Experiment, sizes: Array, n: int) -> list[str]:
    """A sentence for each number that is larger than what it is about: a mini-batch, or the entries of a message."""
    most = int(sizes.max())
    size = getattr(config.algorithm, "batch_size", 0)
    found = []
    if size > most:
        found.append(f"algorithm.batch_size = {size} is above the {most} samples of the largest client: all are taken")
    numbers = n * (n + 1) // 2 if "hess" in needs(config.algorithm) else n
    own = getattr(config.algorithm, "compressor", None)
    return found if own is None else found + above("algorithm.compressor", own, numbers)


def selecting(config: Experiment) -> list[str]:
    """A sentence where the method also asks clients that are not selected, or all nodes of a graph take part."""
    said, name = SELECTING.get(config.algorithm.takes), config.algorithm.label()
    who = f"all nodes take part in {name}" if config.algorithm.on_graph else f"{name} asks all clients"
    return [] if said is None else [f"{who}{said}"]


def worth_saying(config: Experiment, m: int, features: Iterable[Feature]) -> list[str]:
    """The notes with which a run begins: those on selection only where the user changed that table."""
    changed = any(key.partition(".")[0] == "selection" for key in config.changed())
    return [note for note in notes(config, m, features) if changed or note not in selecting(config)]


def redrawn(before: Result | None, saved: Saved | None) -> int:
    """Rounds whose uploads were drawn before an interruption and are drawn again, now and at earlier resumptions.

    ``before`` is the result so far and ``saved`` the checkpoint that the run goes on from (None: it starts again). Of a
    run that was cut off, the round under way counts too.
    """
    if before is None:
        return 0
    lost = before.cr - (0 if saved is None else saved.round)
    in_order = before.status == "finished" or (before.status == "stopped" and "after round" in before.stop_reason)
    return int(before.attrs.get("rounds_redrawn", 0)) + lost + (0 if in_order else 1)
