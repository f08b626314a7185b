"""From an experiment to a result: who is server, who hosts clients, and what happens when something goes wrong."""

from __future__ import annotations

import os
import resource
import socket
import sys
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mpifed.core.errors import Trouble, UserError, failure
from mpifed.data.base import Dataset
from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment.checkpoint import Keeper, Saved
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.progress import Progress
from mpifed.experiment.rounds import rounds
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.mpi import launcher
from mpifed.results.recorder import Recorder
from mpifed.results.result import Result, load


def run(
    config: dict[str, Any] | None = None, path: str | os.PathLike[str] | None = None, force: bool = False
) -> Result | None:
    """Run an experiment given as a nested dictionary (see the experiment file) and return its result.

    Under mpirun every rank calls it, and the result is there on rank 0, None elsewhere. With ``path`` the result is
    written as it grows. Raises UserError for a mistake in ``config``, on every rank; any other error on one of several
    ranks ends all of them.
    """
    world = launcher.connect()
    try:
        with threadpool_limits(1, "blas"):
            return run_config(build(config or {}, world), path, force, world)
    except UserError:
        raise
    except Exception as error:
        if world is not None and world.size > 1:
            fail(world, error)  # the other ranks would wait for ever
        raise


def build(table: dict[str, Any], world: Any) -> Experiment:
    """The experiment that a table describes, on every rank; a UserError of one rank, who lacks a file, say, on all of them."""
    config, error = None, None
    try:
        config = experiment(table)
    except UserError as mistake:
        error = str(mistake)
    agree(world, error)
    assert config is not None
    return config


def run_config(
    config: Experiment,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    world: Any = None,
    progress: Progress | None = None,
    saved: Saved | None = None,
    before: Result | None = None,
    survive: bool = False,
) -> Result | None:
    """Run an experiment on the ranks of ``world`` (None: in this process) and record it at ``path`` (None: in memory).

    With ``saved``, a checkpoint, and on rank 0 ``before``, its result file, the rounds after it. With ``survive`` ranks that
    live go on from the last checkpoint when others die. The result, on rank 0; None on the other ranks. Raises UserError, the
    same on every rank, before the first of these rounds.
    """
    recorder = record(config, path, force, world, progress, saved, before, survive)
    return None if recorder is None else recorder.result()


def record(
    config: Experiment,
    path: str | os.PathLike[str] | None,
    force: bool,
    world: Any,
    progress: Progress | None = None,
    saved: Saved | None = None,
    before: Result | None = None,
    survive: bool = False,
    cache: Cache | None = None,
) -> Recorder | None:
    """The same, but what is recorded is not read back; data sets come from ``cache``."""
    if survive and not (world is not None and world.survives()):
        raise UserError(
            "--survive needs Open MPI's mpirun --with-ft ulfm, for other launchers end all ranks when one dies; "
            "resume goes on from the last checkpoint everywhere"
        )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite ends the run
        while True:
            done = None
            try:
                done = _record(config, path, force, world, progress or Progress(None), saved, before, cache)
                if not survive or world.unhurt():
                    return done
            except Exception as error:
                if not survive or not world.lost(error):
                    raise
                world.hurt()
            world, force = world.shrink(), True
            if world.share(done is not None):
                return done
            found = checkpoint.find(path) if world.rank == 0 and path is not None else None
            before = load(path) if found is not None and path is not None else None
            saved = world.share(found)
            if world.rank == 0 and progress is not None:
                progress.note(
                    f"a rank died; {world.size} ranks go on after round {0 if saved is None else saved.round}"
                )


def _record(
    config: Experiment,
    path: Any,
    force: bool,
    world: Any,
    progress: Progress,
    saved: Saved | None,
    before: Result | None,
    cache: Cache | None,
) -> Recorder | None:
    rank, size = (0, 1) if world is None else (world.rank, world.size)
    hosts = max(1, size - 1)
    try:
        source = (config.seed, config.dtype)
        data = config.data.load(*source) if cache is None else cache.load(config.data, *source)
        start = check(config, data, size)
        if saved is not None and saved.cuts[-1] != data.m:
            raise UserError(
                f"the data have changed: the checkpoint has {saved.cuts[-1]} clients, and now there are {data.m}"
            )
        draws = config.selection.draws(config.seed, data.m, config.rounds)
        config.algorithm.verify(draws.size)
        if config.rounds:
            draws.draw(1, config.algorithm.selections - 1)  # refuses a second draw that is not there
        devices = (
            None
            if config.system is None
            else config.system.devices(
                config.seed, data.sizes, len(start) * np.dtype(config.dtype).itemsize, config.algorithm, draws.size
            )
        )
        cuts = sums.cuts(data.sizes, hosts)
        host = None
        if size == 1 or rank > 0:
            lo, hi = cuts[max(rank - 1, 0)], cuts[max(rank - 1, 0) + 1]
            host = Host(data, config.problem, config.algorithm, lo, hi, start, config.dtype, config.seed)
            host.join()
            if path is not None:
                host.checkpoint = partial(checkpoint.piece, checkpoint.folder(path), owner=lo)
            if saved is not None:
                host.restore(saved.clients(lo, hi))
        error = None
    except UserError as mistake:
        error = str(mistake)
    except MemoryError as lack:
        error = f"this run does not fit in the memory of rank {rank}: {lack}".removesuffix(": ")
    agree(world, error)
    recorder = None
    if rank == 0:
        attrs = {
            "config": config.toml(),
            "seed": config.seed,
            "ranks": size,
            "mpi_library": world.library if world is not None else "none",
        }
        try:
            recorder = Recorder(path, attrs, data.m, force, before, -1 if saved is None else saved.round)
        except UserError as mistake:
            error = str(mistake)
    try:
        agree(world, error)
    except Exception:
        if recorder is not None:
            recorder.finish("failed", "a rank died")
        raise
    if world is not None and size > 1:
        from mpifed.mpi.channel import Server, serve

        if host is not None:
            traffic = serve(world, cuts, host)
            if traffic is not None:
                report(world, host, traffic)
            return None
        transport: Any = Server(world, cuts, config.dtype)
    elif host is not None:
        transport = InProcess(host)
    assert recorder is not None
    keeper = Keeper(config.checkpoint, path, saved, cuts)
    fed = Federation(
        transport, config.problem, draws, config.seed, data.sizes, start, config.dtype, config.reproducible, devices
    )
    return lead(config, data, fed, transport, recorder, keeper, world, progress, saved)


def lead(
    config: Experiment,
    data: Dataset,
    fed: Federation,
    transport: Any,
    recorder: Recorder,
    keeper: Keeper,
    world: Any,
    progress: Progress,
    saved: Saved | None,
) -> Recorder:
    """Rank 0: the rounds, and what is written when they are over."""
    fed.steering = config.algorithm.steering()
    if (advice := config.algorithm.advice(data.m)) is not None:
        progress.note(advice)
    with recorder:
        try:
            server, status, reason = rounds(config, fed, recorder, progress, keeper, saved)
            recorder.model(server.x, fed.inspect(config.algorithm.personalised) if config.record.personal else None)
        except (UserError, Trouble):
            stop(transport, report=False)
            raise
        finally:
            progress.close()
        stop(transport)
        ranks, clients = tables(world, transport, data, fed)
        recorder.clients(clients)
        recorder.ranks(ranks)
        recorder.ranks({"io_seconds": [recorder.io_seconds + keeper.seconds, *ranks["io_seconds"][1:]]})
        recorder.finish(status, reason)
        if status == "finished" and not config.checkpoint.keep:
            keeper.drop()
    return recorder


def check(config: Experiment, data: Dataset, size: int) -> np.ndarray:
    """The model (n,) of the start; UserError for what cannot go together."""
    problem, algorithm = config.problem, config.algorithm
    for need in algorithm.needs():
        if not problem.has(need):
            raise UserError(f"{algorithm.label()} cannot run on {problem.label()}: it needs {need}")
    for key, table in (("algorithm", algorithm), ("selection", config.selection)):
        batch = getattr(table, "batch_size", 0)
        if batch and not problem.sampled:
            raise UserError(
                f"{key}.batch_size = {batch} is wrong: {problem.label()} has no samples to draw mini-batches of, "
                "so it must be 0"
            )
    if config.record.personal and not algorithm.personal:
        raise UserError(f"record.personal = true is wrong: {algorithm.label()} has no personal models")
    if size > data.m + 1:
        raise UserError(
            f"{size} ranks are too many for {data.m} clients: start at most {data.m + 1}, one for the server "
            "and one for each client"
        )
    try:
        return problem.initial(data, config.seed)
    except ValueError as error:
        raise UserError(f"problem {problem.label()!r} cannot use these data: {error}") from None


def agree(world: Any, error: str | None) -> None:
    """Raise the first rank's mistake on every rank."""
    error = error if world is None else world.agree(error)
    if error is not None:
        raise UserError(error)


def stop(transport: Any, report: bool = True) -> None:
    if not isinstance(transport, InProcess):
        transport.stop(report)


def report(world: Any, host: Host | None, traffic: Any) -> tuple[list[Any], Any]:
    """At the end of a run every rank tells what it did; at rank 0: a row a rank, and the seconds of every client."""
    mine: list[Any] = (
        [0, 0, 0.0, 0.0]
        if host is None
        else [host.hi - host.lo, int(sum(block.d.sum() for block in host.blocks)), host.computed, host.evaluated]
    )
    if traffic is None:
        mine += [0.0, 0.0, 0, 0, 0]
    else:
        mine += [traffic.comm, traffic.wait, traffic.calls, traffic.sent, traffic.received]
    mine += [
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        socket.gethostname(),
    ]
    seconds = np.zeros(0) if host is None else host.seconds[host.slot]
    if world is None:
        return [mine], seconds
    rows = world.collect(mine)
    return rows, world.collect_rows(seconds, [row[0] for row in rows])


def tables(world: Any, transport: Any, data: Dataset, fed: Federation) -> tuple[dict[str, Any], dict[str, Any]]:
    """/ranks and /clients of the result."""
    local = isinstance(transport, InProcess)
    rows, seconds = report(
        None if local else world, transport.host if local else None, None if local else transport.traffic
    )
    names = (
        "clients",
        "samples",
        "compute_seconds",
        "evaluate_seconds",
        "comm_seconds",
        "wait_seconds",
        "mpi_calls",
        "mpi_bytes_sent",
        "mpi_bytes_received",
        "max_rss_bytes",
        "hostname",
    )
    ranks = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    ranks["io_seconds"] = [0.0] * len(rows)
    home = np.repeat(np.arange(len(rows)), ranks["clients"])
    return ranks, {
        "samples": data.sizes,
        "rank": home,
        "times_selected": fed.times_selected,
        "compute_seconds": seconds,
    }


def fail(world: Any, error: BaseException) -> None:
    """End all ranks after an error that is no user's mistake: one message, then where it happened."""
    text = str(error) if isinstance(error, Trouble) else failure(0 if world is None else world.rank, error)
    sys.stderr.write(f"mpifed: {text}\n")
    if world is not None and world.size > 1:
        world.abort(1)
