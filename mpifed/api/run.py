"""Runs started or continued by a Python program, on all ranks that call together."""

import dataclasses
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from mpifed.api.progress import ProgressOption, RoundCallback, progress
from mpifed.api.result import Result
from mpifed.api.study import StudyLike, build_table, override_words
from mpifed.core.errors import UserError, errors_about
from mpifed.data.sources.held import get_held, refuse_others
from mpifed.experiment import resume as resuming
from mpifed.experiment.config import Job
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import build_experiment, fail, start
from mpifed.mpi import launcher
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder

PIECE = 1 << 30  # bytes of a message, of which older MPI libraries take 2 GB at most


def run(
    experiment: StudyLike = None,
    overrides: Mapping[str, Any] | None = None,
    /,
    *,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: ProgressOption = "auto",
    callback: RoundCallback | None = None,
    **settings: Any,
) -> Result:
    """Run an experiment and return its result: ``mpifed.run("study.toml", {"algorithm.k0": 5}, rounds=20)``.

    ``experiment``: path of an experiment file, or a mapping with its keys, nested or dotted; None: the default study.
    ``overrides``, then ``settings``, change it. Values are numbers, texts, lists, mappings, or component objects such
    as ``algorithm=mpifed.algorithms.FedGiA(k0=5)`` and ``data=mpifed.arrays(X, y, sizes)``; None stands for the
    default. A mapping changes the keys that it names; an object replaces the whole table.

    ``path``: file that is written as the run goes on, replaced only with ``force``; None keeps the result in memory.
    ``progress``: "auto" (a bar of tqdm where it is installed and somebody looks, else a line), "line", True or False.
    ``callback(round, row)``: called after every round, 0 included, with what was recorded; True ends the run.

    Under mpirun every rank calls it and gets the same result; rank 0 alone writes the file and calls back. Raises
    UserError for a mistake in the experiment, on every rank; another error on one of several ranks ends all.
    """

    def job(world: World) -> Job:
        with world.agreeing():
            table = build_table(experiment, overrides, settings)
            if world.first and path is not None and not force and os.path.lexists(path):
                raise UserError(f"{os.fspath(path)} exists: pass force=True to overwrite it, or another path")
        return Job(build_experiment(share_table(table, world) if world.size > 1 else table, world), path, force)

    return run_job(job, progress, callback)


def resume(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    /,
    *,
    progress: ProgressOption = "auto",
    callback: RoundCallback | None = None,
    **settings: Any,
) -> Result:
    """Continue the run of a result file from its last checkpoint, with the same bits, and return its result.

    ``overrides`` and ``settings`` may change ``rounds``, ``stop`` and ``checkpoint``:
    ``mpifed.resume("out.h5", rounds=40)``. What the file cannot hold is given again: arrays, ``data=mpifed.arrays(X,
    y, sizes)``, and components of classes that were defined in a notebook or script, ``algorithm=MyMethod()``. The rest
    is as for ``run``.
    """

    def job(world: World) -> Job:
        with world.agreeing():
            changes = override_words(overrides, settings)
            table, saved, before = resuming.resume(path, changes) if world.first else ({}, None, None)
        table, saved = world.share((table, saved))
        return Job(build_experiment(table, world), path, True, saved, before)

    # errors begin with the name of the file: rank 0 reads it far below, and the caller may resume many
    with errors_about(os.fspath(path)):
        return run_job(job, progress, callback)


def share_table(table: dict[str, Any], world: World) -> dict[str, Any]:
    """Return the table of rank 0 on every rank. UserError where ranks have other arrays."""
    first: dict[str, Any] = world.share(table)
    with world.agreeing():
        refuse_others(table, first, world.rank)
    return first


@contextmanager
def connect_ranks() -> Iterator[World]:
    """Connect all ranks, with one BLAS thread each; an error on one of several, except a UserError, ends all."""
    world = launcher.connect_ranks()
    try:
        with threadpool_limits(1, "blas"):
            yield world
    except UserError:
        raise
    except KeyboardInterrupt:
        world.abort(1)
        raise
    except BaseException as error:  # others too, such as SystemExit and asyncio's CancelledError
        if world.size > 1:
            fail(world, error)  # otherwise the other ranks would wait for ever
        raise


def run_job(job: Callable[[World], Job], requested: ProgressOption, callback: RoundCallback | None) -> Result:
    """Make a job and run it; return the same result on every rank."""
    with connect_ranks() as world:
        # an invalid request must not stop only rank 0, while the others wait for its study
        with world.agreeing():
            display = progress(requested, callback) if world.first else Progress(None)
        made = job(world)
        recorder = start_everywhere(made, world, display)
        with world.agreeing():
            recorded = [] if recorder is None else [Result.of(recorder.result())]
        (result,) = share_results(recorded, world) if world.size > 1 else recorded
        if made.config.data.held:
            result.held = get_held(made.config.data)
        return result


def start_everywhere(made: Job, world: World, display: Progress) -> Recorder | None:
    """Run a job like ``start``; a UserError that only rank 0 raises is raised on all, which wait for its result."""
    recorder, mistake = None, None
    try:
        recorder = start(made, world, display)
    except UserError as error:
        mistake = error
    text = world.agree(None if mistake is None else str(mistake))
    if text is not None:
        raise mistake or UserError(text)
    return recorder


def share_results(results: list[Result], world: World) -> list[Result]:
    """Return the results of rank 0 on every rank."""
    tables = [{field.name: getattr(result, field.name) for field in dataclasses.fields(result)} for result in results]
    data = pickle.dumps(tables, pickle.HIGHEST_PROTOCOL)
    pieces = [world.share(data[k : k + PIECE]) for k in range(0, world.share(len(data)), PIECE)]
    return results if world.first else [Result(**table) for table in pickle.loads(b"".join(pieces))]
