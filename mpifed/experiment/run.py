"""From an experiment to a result: which rank serves, which ranks host clients, and how errors end a run."""

import importlib
import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from mpifed.core.errors import RunError, UserError, escape_unprintable, failure_message, last_result
from mpifed.core.files import check_name_length, check_target
from mpifed.data.cache import Cache
from mpifed.engine.listed import list_callbacks
from mpifed.experiment import checkpoint, serving
from mpifed.experiment.checkpoint import SUFFIX
from mpifed.experiment.checkpoint_errors import check_rows, check_server, reporting_mismatch
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.hardware import choose_kernels, compiled_kernels, gather_hardware, load_kernels
from mpifed.experiment.housing import add_host
from mpifed.experiment.new_result import new_recorder
from mpifed.experiment.prepare import PreparedRun, prepare
from mpifed.experiment.progress import Progress
from mpifed.experiment.warm_start import read_start_model
from mpifed.features.settings import Experiment
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder

REHEARSAL = "mpifed.experiment.rehearsed_work"  # imported only where time is simulated


def build_experiment(table: dict[str, Any], world: World) -> Experiment:
    """Build the experiment that a table describes, on every rank. UserError on all where one of them lacks a file."""
    with world.agreeing():
        config = experiment(table)
    return config


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # numbers that are not finite end the run
def start(
    job: Job, world: World | None = None, progress: Progress | None = None, cache: Cache | None = None
) -> Recorder | None:
    """Run a job on the ranks of ``world`` (default: this process alone), with data sets from ``cache`` if given.

    Returns the recorder of the result on rank 0, None on the others. Raises UserError, the same on every rank, before
    the first round.
    """
    world, progress = world or World(), progress or Progress(None)
    if job.survive:
        from mpifed.engine.promises.feature import refuse_dying

        refuse_dying(job.config, world.is_fault_tolerant())
    last_result.text = ""
    try:
        if job.survive:
            return attempt_until_done(job, world, progress, cache)
        return attempt(job, world, progress, cache, [])
    except BaseException as error:
        vars(error)["last_result"] = last_result.text
        raise


def attempt_until_done(job: Job, world: World, progress: Progress, cache: Cache | None) -> Recorder | None:
    """Attempt a job; when ranks die, attempt it again on the others, from the last checkpoint or else from the start.

    The result so far is passed on in both cases: it tells how many uploads are lost.
    """
    while True:
        done = None
        recorders: list[Recorder] = []
        try:
            done = attempt(job, world, progress, cache, recorders)
            if world.all_alive():
                return done
        except Exception as error:
            if not world.is_rank_failure(error):
                raise
            world.report_cut_off()
        world = world.shrink()
        if world.share(done is not None):
            return done
        saved = checkpoint.read_checkpoint(job.path) if recorders and job.path is not None else job.saved
        before = recorders[0].result() if recorders else job.before
        job = job._replace(force=True, saved=world.share(saved), before=before)
        if world.first:
            after = 0 if job.saved is None else job.saved.round
            progress.note(f"a rank died; {world.size} ranks go on after round {after}")


def attempt(job: Job, world: World, progress: Progress, cache: Cache | None, begun: list[Recorder]) -> Recorder | None:
    """Run a job, with heartbeats between machines where there is a file to resume."""
    if world.size == 1 or job.path is None or not job.config.patience:
        return prepare_and_run(job, world, progress, cache, begun)
    from mpifed.mpi.signs_of_life import watch_machines

    with watch_machines(world, job.config.patience, progress.note) as watch:
        return prepare_and_run(job, world, progress, cache, begun, watch)


def prepare_and_run(
    job: Job, world: World, progress: Progress, cache: Cache | None, begun: list[Recorder], watch: Any = None
) -> Recorder | None:
    """Prepare and run a job; rank 0 puts its recorder into ``begun``. Raises an error of MPI where a rank dies."""
    x = None
    if job.config.start is not None and job.saved is None:
        with world.agreeing():
            x = read_start_model(job.config.start) if world.first else None
        x = world.share(x)
    with world.agreeing():
        count = None if job.config.system is None else importlib.import_module(REHEARSAL).count_work
        parts = prepare(job, world.size, cache, x, count)
        if world.first and job.path is not None:
            check_target(os.fspath(job.path), job.force or job.before is not None)
            check_name_length(os.fspath(job.path), len(f".{SUFFIX}"))
    kernels = choose_kernels(job, world, parts.data, progress)
    with world.agreeing():
        if world.has_clients:
            lo, hi = parts.cuts[max(world.rank - 1, 0) :][:2]
            parts = add_host(parts, job, (lo, hi), kernels)
        else:
            parts = parts._replace(setup=parts.setup._replace(kernels=kernels))
    if kernels == "compiled":
        load_kernels(job.config.dtype, compiled_kernels(job.config.algorithm, parts.data), world, progress)
    with world.agreeing():
        initialise_clients(parts, job, world.first)
        if world.first:
            parts = parts._replace(callbacks=list_callbacks(parts.features))
    parts = gather_hardware(parts, world)
    recorder = open_recorder(job, world, parts, watch)
    if recorder is None:
        serving.host(job, world, parts)
        return None
    return serving.serve(job, world, parts, recorder, progress, begun)


def open_recorder(job: Job, world: World, parts: PreparedRun, watch: Any) -> Recorder | None:
    """Open the recorder at rank 0, once all ranks agree that there can be one; None on the others."""
    recorder = None
    try:
        with world.agreeing():
            if world.first:
                recorder = new_recorder(job, world, parts)
                if watch is not None:
                    watch.before_end = recorder.abandon
    except Exception:
        # the file exists and other ranks failed: it must not say that the run goes on
        if recorder is not None:
            recorder.finish("failed", "a rank died")
        raise
    return recorder


def initialise_clients(parts: PreparedRun, job: Job, first: bool) -> None:
    """Set the clients of a host to the state of the start or of the checkpoint.

    UserError where the checkpoint is of another run; rank 0, which is ``first``, also checks the part of the server.
    """
    host = parts.host
    if host is not None:
        host.join()
    if job.saved is None:
        return
    now, then = parts.data.m, job.saved.cuts[-1]
    if now != then:
        raise UserError(f"the data have changed: the checkpoint has {then} clients, and now there are {now}")
    with reporting_mismatch(job.saved.folder):
        if first:
            check_server(job.saved, job.config.algorithm, parts.setup.start)
        if host is not None:
            rows = job.saved.read_clients(host.lo, host.hi)
            check_rows(rows, host.state, host.hi - host.lo)
            host.restore(rows)


def fail(world: World, error: BaseException) -> None:
    """End all ranks after an error that is not the user's mistake: print one message with its place."""
    text = str(error) if isinstance(error, RunError) else failure_message(world.rank, error)
    with suppress(OSError):
        sys.stderr.write("mpifed: " + escape_unprintable(f"{text}\n", keep="\n"))
    world.abort(1)
