"""Attributes and notes of a run before its first round, for its result file and for the user."""

from mpifed.compressors.compressor import note_large_k
from mpifed.core.errors import UserError
from mpifed.core.roles import left_out_note
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import StoredCheckpoint
from mpifed.experiment.config import Job
from mpifed.experiment.hardware import (
    FIELD,
    earlier_changes,
    hardware_attributes,
    hardware_changes,
    hardware_differences,
)
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.resume import drop_last_evaluation
from mpifed.features.feature import Callbacks
from mpifed.features.settings import Experiment
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.traits import Participation, required_methods
from mpifed.mpi.world import World
from mpifed.results.columns import COLUMNS, MEASURES, SCALES
from mpifed.results.recorder import Recorder
from mpifed.results.result import RunRecord

SELECTING = {
    Participation.ALL: "; selection has no effect",
    Participation.SELECTED_OR_ALL: " in some rounds; selection decides which ones reply in the others",
    Participation.SELECTED_AND_ALL: "; selection decides what each computes, not which ones reply",
}


def new_recorder(job: Job, world: World, parts: PreparedRun) -> Recorder:
    """Open the result file of a job with its rounds so far. UserError for a metric named like another column."""
    for name in job.config.problem.measure_names():
        if name in {*COLUMNS, *SCALES} - {*MEASURES}:
            raise UserError(
                f"the metric {name} of the problem is wrong: there is a column {name}, so rename the function"
            )
    replayed = replayed_rounds(job.before, job.saved)
    before = None if job.saved is None else job.before
    hardware = hardware_attributes(parts)
    past, new = [], []
    if before is not None:
        past = earlier_changes(before)
        new = hardware_changes(hardware, before, job.saved)
    attributes = {
        "config": job.config.toml(),
        "seed": job.config.seed,
        "features": parts.data.n,
        **evaluation_attributes(parts),
        "ranks": world.size,
        "mpi_library": world.library,
        "block_bytes": parts.block.bytes,
        "block_bytes_reason": parts.block.reason,
        **hardware,
        "changed": " ".join(job.config.changed_keys()),
        **({FIELD: "\n".join([*past, *new])} if past or new else {}),
        "notes": "\n".join([*study_notes(job.config, parts.setup.m, parts.callbacks), *past, *run_notes(job, parts)]),
    }
    for callback in parts.callbacks:
        for name, value in callback.attributes(replayed).items():
            if name in attributes:
                raise UserError(f"{type(callback).__name__} has the attribute {name}, which results have: rename it")
            attributes[name] = value
    last = -1 if job.saved is None else job.saved.round
    if before is not None:
        drop_last_evaluation(before, job.config, last)
    recorder = Recorder(job.path, attributes, parts.setup.m, job.force or job.before is not None, before, last)
    recorder.at_once = "rounds_redrawn" in attributes  # for the uploads of all rounds to be counted after a crash
    return recorder


def evaluation_attributes(parts: PreparedRun) -> dict[str, str | int]:
    """Return the attributes that name the columns over samples, the samples, and how many clients have none."""
    columns, setup = Evaluation(parts.setup).sample_metrics(), parts.setup
    chosen = {} if setup.validation is None else {"validation_missing": setup.validation.missing}
    if not columns and not setup.problem.client_measures():
        return dict(chosen)
    return {"evaluated": " ".join(columns), "evaluated_on": setup.role.name, "missing": setup.role.missing, **chosen}


def run_notes(job: Job, parts: PreparedRun) -> list[str]:
    """Return the notes on oversized options, data, what is evaluated, and kernels and devices."""
    sizes = oversized_options(job.config, parts.data.sizes, parts.setup.start.size)
    kernels = hardware_differences(parts.blas, parts.devices) if len(parts.blas) > 1 else []
    resumed = [] if job.saved is None else hardware_changes(hardware_attributes(parts), job.before, job.saved)
    by_client = ["the numbers of clients"] if job.config.evaluate.clients else []
    missing = left_out_note(parts.setup.role, parts.setup.m, Evaluation(parts.setup).sample_metrics() or by_client)
    if parts.setup.validation is not None:
        missing += left_out_note(parts.setup.validation, parts.setup.m, ["columns validation_…"])
    return [*sizes, *parts.data.notes, *missing, *kernels, *resumed]


def study_notes(config: Experiment, m: int, callbacks: Callbacks) -> list[str]:
    """Return the notes of a run with m clients: those of the theory, of callbacks, and of [selection]."""
    notes = [note for callback in callbacks for note in callback.notes()]
    return [*filter(None, [config.algorithm.advice(m)]), *notes, *selection_notes(config)]


def oversized_options(config: Experiment, sizes: Array, n: int) -> list[str]:
    """Return a sentence for each option that is too large: a mini-batch, or the entries of a message."""
    high = int(sizes.max())
    size = getattr(config.algorithm, "batch_size", 0)
    texts = []
    if size > high:
        texts.append(f"algorithm.batch_size = {size} is above the {high} samples of the largest client: all are taken")
    numbers = n * (n + 1) // 2 if "hess" in required_methods(config.algorithm) else n
    compressor = getattr(config.algorithm, "compressor", None)
    return texts if compressor is None else texts + note_large_k("algorithm.compressor", compressor, numbers)


def selection_notes(config: Experiment) -> list[str]:
    """Return a note where clients that are not selected reply too, or all nodes of a graph take part."""
    effect, name = SELECTING.get(config.algorithm.participation), config.algorithm.label()
    subject = f"all nodes take part in {name}" if config.algorithm.on_graph else f"{name} asks all clients"
    return [] if effect is None else [f"{subject}{effect}"]


def initial_notes(config: Experiment, m: int, callbacks: Callbacks) -> list[str]:
    """Return the notes at the start of a run; those on selection only if the user changed that table."""
    changed = any(key.partition(".")[0] == "selection" for key in config.changed_keys())
    return [note for note in study_notes(config, m, callbacks) if changed or note not in selection_notes(config)]


def replayed_rounds(before: RunRecord | None, saved: StoredCheckpoint | None) -> int:
    """Return how many rounds are replayed: begun before an interruption and drawn again, at all resumptions together.

    ``before`` is the result so far and ``saved`` the checkpoint from which the run continues (None: it starts again).
    In a run that was cut off, the round under way counts too.
    """
    if before is None:
        return 0
    lost = before.cr - (0 if saved is None else saved.round)
    ended_in_order = before.status == "finished" or (before.status == "stopped" and "after round" in before.stop_reason)
    return int(before.attrs.get("rounds_redrawn", 0)) + lost + (0 if ended_in_order else 1)
