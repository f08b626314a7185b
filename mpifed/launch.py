"""From an experiment to a result: who is server, who hosts clients, and what happens when something goes wrong."""
from __future__ import annotations

import os
import resource
import socket
import sys
import traceback
from typing import Any

import numpy as np

from mpifed import sums
from mpifed.component import UserError
from mpifed.config import Experiment
from mpifed.data.clients import Dataset
from mpifed.experiment import rounds
from mpifed.federation import Federation, InProcess
from mpifed.host import Host
from mpifed.progress import Progress
from mpifed.record import Recorder
from mpifed.results import Result


def run(config: Experiment, path: str | os.PathLike[str] | None = None, force: bool = False, world: Any = None,
        progress: Progress | None = None) -> Result | None:
    """Run an experiment on the ranks of ``world`` (None: in this process) and record it at ``path`` (None: in memory).

    The result, on rank 0; None on the other ranks. Raises UserError, the same on every rank, before round one.
    """
    rank, size = (0, 1) if world is None else (world.rank, world.size)
    hosts = max(1, size - 1)
    try:
        data = config.data.load(config.seed, config.dtype)
        start = check(config, data, size)
        draws = config.selection.draws(config.seed, data.m, config.rounds)
        config.algorithm.verify(draws.size)
        if config.rounds:
            draws.draw(1, config.algorithm.draws - 1)      # refuses a second draw that is not there
        cuts = sums.cuts(data.sizes, hosts)
        host = None
        if size == 1 or rank > 0:
            lo, hi = cuts[max(rank - 1, 0)], cuts[max(rank - 1, 0) + 1]
            host = Host(data, config.problem, config.algorithm, lo, hi, start, config.dtype, config.seed)
            host.join()
        error = None
    except UserError as mistake:
        error = str(mistake)
    agree(world, error)
    recorder = None
    if rank == 0:
        attrs = {"config": config.toml(), "seed": config.seed, "ranks": size,
                 "mpi_library": world.library if world is not None else "none"}
        try:
            recorder = Recorder(path, attrs, data.m, force)
        except UserError as mistake:
            error = str(mistake)
    agree(world, error)
    if world is not None and size > 1:
        from mpifed.mpi import Server, serve

        if host is not None:
            traffic = serve(world, cuts, host)
            report(world, host, traffic)
            return None
        transport: Any = Server(world, cuts, config.dtype)
    elif host is not None:
        transport = InProcess(host)
    assert recorder is not None
    return lead(config, data, start, draws, transport, recorder, world, progress or Progress(None))


def lead(config: Experiment, data: Dataset, start: np.ndarray, draws: Any, transport: Any, recorder: Recorder, world: Any,
         progress: Progress) -> Result:
    """Rank 0: the rounds, and what is written when they are over."""
    fed = Federation(transport, config.problem, draws, config.seed, data.sizes, start, config.dtype,
                     config.reproducible)
    if (advice := config.algorithm.advice(data.m)) is not None:
        progress.note(advice)
    with recorder:
        try:
            server, status, reason = rounds(config, fed, recorder, progress)
        except UserError:
            stop(transport)
            raise
        finally:
            progress.close()
        recorder.model(server.x, fed.inspect(config.algorithm.personalised) if config.record.personal else None)
        stop(transport)
        ranks, clients = tables(world, transport, data, fed, recorder.io_seconds)
        recorder.ranks(ranks)
        recorder.clients(clients)
        recorder.finish(status, reason)
    return recorder.result()


def check(config: Experiment, data: Dataset, size: int) -> np.ndarray:
    """The model (n,) of the start; UserError for what cannot go together."""
    problem, algorithm = config.problem, config.algorithm
    for need in algorithm.needs():
        if not hasattr(problem, need):
            raise UserError(f"{algorithm.label()} cannot run on {problem.label()}: it needs {need}")
    for key, table in (("algorithm", algorithm), ("selection", config.selection)):
        batch = getattr(table, "batch_size", 0)
        if batch and not problem.sampled:
            raise UserError(f"{key}.batch_size = {batch} is wrong: {problem.label()} has no samples to draw mini-batches of, "
                            "so it must be 0")
    if config.record.personal and not algorithm.personal:
        raise UserError(f"record.personal = true is wrong: {algorithm.label()} has no personal models")
    if size > data.m + 1:
        raise UserError(f"{size} ranks are too many for {data.m} clients: start at most {data.m + 1}, one for the server "
                        "and one for each client")
    try:
        return problem.initial(data, config.seed)
    except ValueError as error:
        raise UserError(f"problem {problem.label()!r} cannot use these data: {error}") from None


def agree(world: Any, error: str | None) -> None:
    """Raise the first rank's mistake on every rank."""
    error = error if world is None else world.agree(error)
    if error is not None:
        raise UserError(error)


def stop(transport: Any) -> None:
    if not isinstance(transport, InProcess):
        transport.stop()


def report(world: Any, host: Host | None, traffic: Any) -> tuple[list[Any], Any]:
    """At the end of a run every rank tells what it did; at rank 0: a row a rank, and the seconds of every client."""
    mine: list[Any] = [0, 0, 0.0, 0.0] if host is None else [
        host.hi - host.lo, int(sum(block.d.sum() for block in host.blocks)), host.computed, host.evaluated]
    if traffic is None:
        mine += [0.0, 0.0, 0, 0, 0]
    else:
        mine += [traffic.comm, traffic.wait, traffic.calls, traffic.sent, traffic.received]
    mine += [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024), socket.gethostname()]
    seconds = np.zeros(0) if host is None else host.seconds[host.slot]
    if world is None:
        return [mine], seconds
    rows = world.collect(mine)
    return rows, world.collect_rows(seconds, [row[0] for row in rows])


def tables(world: Any, transport: Any, data: Dataset, fed: Federation, io: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """/ranks and /clients of the result."""
    local = isinstance(transport, InProcess)
    rows, seconds = report(None if local else world, transport.host if local else None, None if local else transport.traffic)
    names = ("clients", "samples", "compute_seconds", "evaluate_seconds", "comm_seconds", "wait_seconds", "mpi_calls",
             "mpi_bytes_sent", "mpi_bytes_received", "max_rss_bytes", "hostname")
    ranks = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    ranks["io_seconds"] = [io] + [0.0] * (len(rows) - 1)
    home = np.repeat(np.arange(len(rows)), ranks["clients"])
    return ranks, {"samples": data.sizes, "rank": home, "times_selected": fed.times_selected, "compute_seconds": seconds}


def fail(world: Any, error: BaseException) -> None:
    """End all ranks after an error that is no user's mistake: one message, then where it happened."""
    rank = 0 if world is None else world.rank
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    where = "".join(traceback.format_tb(error.__traceback__))
    sys.stderr.write(f"mpifed: rank {rank} on {socket.gethostname()} failed: {what}\n{where}")
    if world is not None and world.size > 1:
        world.abort(1)
