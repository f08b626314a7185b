"""From an experiment to a result: which rank serves, which host clients, and what happens when something goes wrong."""

import importlib
import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from mpifed.core.errors import RunError, UserError, failure, printable
from mpifed.core.files import check_length, checked_target
from mpifed.data.cache import Cache
from mpifed.experiment import serving
from mpifed.experiment.checkpoint import SUFFIX
from mpifed.experiment.computers import with_computers
from mpifed.experiment.config import experiment
from mpifed.experiment.housing import housed
from mpifed.experiment.job import Job
from mpifed.experiment.kernels import called, choose, ready
from mpifed.experiment.misfit import check_rows, check_server, fitting
from mpifed.experiment.new_result import new_recorder
from mpifed.experiment.prepare import Prepared, prepare
from mpifed.experiment.progress import Progress
from mpifed.experiment.warm_start import given_start
from mpifed.features.settings import Experiment
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder

REHEARSAL = "mpifed.experiment.rehearsed_work"  # imported where time is simulated alone


def build(table: dict[str, Any], world: World) -> Experiment:
    """The experiment that a table describes, on every rank. Raises UserError on all where one of them lacks a file."""
    with world.agreeing():
        config = experiment(table)
    return config


def start(
    job: Job, world: World | None = None, progress: Progress | None = None, cache: Cache | None = None
) -> Recorder | None:
    """Run a job on the ranks of ``world`` (default: this process alone), with data sets from ``cache`` if given.

    Returns the recorder of the result on rank 0, None on the others. Raises UserError, the same on every rank, before
    the first round.
    """
    world, progress = world or World(), progress or Progress(None)
    if job.survive and not world.survives():
        raise UserError(
            "--survive needs Open MPI's mpirun --with-ft ulfm, for other launchers end all ranks when one dies; "
            "resume goes on from the last checkpoint everywhere"
        )
    if job.survive:
        from mpifed.features.promises.feature import refuse_dying

        refuse_dying(job.config)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # numbers that are not finite end the run
        if job.survive:
            from mpifed.experiment.survival import surviving

            return surviving(attempt, job, world, progress, cache)
        return attempt(job, world, progress, cache, [])


def attempt(job: Job, world: World, progress: Progress, cache: Cache | None, begun: list[Recorder]) -> Recorder | None:
    """Carry out a job, with signs of life between machines where there is a file to go on from."""
    if world.size == 1 or job.path is None or not job.config.patience:
        return carried_out(job, world, progress, cache, begun)
    from mpifed.mpi.signs_of_life import watched

    with watched(world, job.config.patience, progress.note) as watch:
        return carried_out(job, world, progress, cache, begun, watch)


def carried_out(
    job: Job, world: World, progress: Progress, cache: Cache | None, begun: list[Recorder], watch: Any = None
) -> Recorder | None:
    """Prepare a job on every rank and run it. Raises an error of MPI where a rank dies.

    Rank 0 puts the recorder into ``begun`` before the first round.
    """
    x = None
    if job.config.start is not None and job.saved is None:
        with world.agreeing():
            x = given_start(job.config.start) if world.first else None
        x = world.share(x)
    with world.agreeing():
        count = None if job.config.system is None else importlib.import_module(REHEARSAL).counted_work
        parts = prepare(job, world.size, cache, x, count)
        if world.first and job.path is not None:
            checked_target(os.fspath(job.path), job.force or job.before is not None)
            check_length(os.fspath(job.path), len(f".{SUFFIX}"))
    kernels = choose(job, world, parts.data, progress)
    with world.agreeing():
        if world.hosting:
            lo, hi = parts.cuts[max(world.rank - 1, 0) :][:2]
            parts = housed(parts, job, (lo, hi), kernels)
        else:
            parts = parts._replace(setup=parts.setup._replace(kernels=kernels))
    if kernels == "compiled":
        ready(job.config.dtype, called(job.config.algorithm, parts.data), world, progress)
    with world.agreeing():
        begin(parts, job, world.first)
    parts = with_computers(parts, world)
    recorder = recording(job, world, parts, watch)
    if recorder is None:
        serving.host(job, world, parts)
        return None
    return serving.serve(job, world, parts, recorder, progress, begun)


def recording(job: Job, world: World, parts: Prepared, watch: Any) -> Recorder | None:
    """The recorder at rank 0, once all ranks agree that there can be one; None on the others."""
    recorder = None
    try:
        with world.agreeing():
            if world.first:
                recorder = new_recorder(job, world, parts)
                if watch is not None:
                    watch.before_end = recorder.abandon
    except Exception:
        # the file is there, and the others did not come: it must not say that the run goes on
        if recorder is not None:
            recorder.finish("failed", "a rank died")
        raise
    return recorder


def begin(parts: Prepared, job: Job, first: bool) -> None:
    """Bring the clients of a host into the state of the start or of the checkpoint.

    UserError where this is another run's, on rank 0, which is ``first``, also where the server's part is.
    """
    host = parts.host
    if host is not None:
        host.join()
    if job.saved is None:
        return
    now, then = parts.data.m, job.saved.cuts[-1]
    if now != then:
        raise UserError(f"the data have changed: the checkpoint has {then} clients, and now there are {now}")
    with fitting(job.saved.folder):
        if first:
            check_server(job.saved, job.config.algorithm, parts.setup.start)
        if host is not None:
            rows = job.saved.clients(host.lo, host.hi)
            check_rows(rows, host.state, host.hi - host.lo)
            host.restore(rows)


def fail(world: World, error: BaseException) -> None:
    """End all ranks after an error that is not the user's mistake: one message, then where it happened."""
    text = str(error) if isinstance(error, RunError) else failure(world.rank, error)
    with suppress(OSError):
        sys.stderr.write("mpifed: " + printable(f"{text}\n", keep="\n"))
    world.abort(1)
