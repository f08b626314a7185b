"""The round loop: round, evaluate, record, stop."""

import math
import time
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import CheckpointWriter, Saved
from mpifed.experiment.lost_file import lost
from mpifed.experiment.misfit import fitting
from mpifed.experiment.progress import Progress
from mpifed.features.feature import ByClient, Looks
from mpifed.features.settings import Experiment
from mpifed.federation.method import ServerState
from mpifed.federation.server import Federation
from mpifed.federation.traits import steering
from mpifed.results.recorder import Recorder

RECENT = 8  # evaluations that stop rules look back on, beside the first
ROUNDING = 1e3  # units in the last place that sums over many samples may be wrong by
NO_CLIENT: Array = np.zeros(0, np.int64)


class Outcome(NamedTuple):
    """The last state of the server, and how the run ended: ``finished`` or ``stopped``, and why."""

    server: ServerState
    status: str
    reason: str


def rounds(
    config: Experiment, fed: Federation, recorder: Recorder, progress: Progress, writer: CheckpointWriter, looks: Looks
) -> Outcome:
    """Run and record the rounds of ``config`` after the checkpoint; round 0 is the start. RunError if f diverges."""
    stop = config.stop
    saved = writer.saved
    every = config.evaluate.every
    history = recorder.history(every)
    round, elapsed = (-1, 0.0) if saved is None else (saved.round, saved.elapsed)
    server: ServerState | None = None
    reason = None
    if saved is not None:
        server = restored(config, fed, saved, history, writer.redrawn)
        reason = stop.reason(history, fed.m, fed.n, fed.evaluation.role.name) if history else None
    while reason is None and round < config.rounds:
        round += 1
        server, spent = played(config.algorithm, fed, round, server, writer.redrawn)
        elapsed += spent
        row = counters(fed, spent) | {"elapsed_seconds": elapsed}
        by_client: dict[str, ByClient] = {}
        server = fed.observed(server)
        if round % every == 0 or round == config.rounds:
            found, by_client = evaluated(config, fed, server, looks)
            row |= found
            remember(history, row)
            reason = stop.reason(history, fed.m, fed.n, fed.evaluation.role.name)
        written(recorder, fed, row, by_client)
        recorder.snapshot(server.x, config.record.models)
        progress.show(round, config.rounds, row)
        refuse_divergence(stop.diverged, history["objective"], round, config.algorithm)
        if reason is None and ((signal := fed.stop_signal or progress.stop) or recorder.lost or writer.due(round)):
            saved_now = save(recorder, writer, fed, server, round, elapsed)
            if signal:
                reason = f"{signal} after round {round}"
                return Outcome(server, "stopped", f"{reason}; resume goes on" if saved_now else reason)
    assert server is not None  # there is a checkpoint, or round 0
    reason = reason or f"rounds: {config.rounds}"
    if config.checkpoint.kept(reason):
        save(recorder, writer, fed, server, round, elapsed)
    return Outcome(server, "finished", reason)


def played(
    algorithm: Algorithm, fed: Federation, round: int, server: ServerState | None, redrawn: int
) -> tuple[ServerState, float]:
    """The server's state after a round, and the seconds that this took."""
    begun = time.perf_counter()
    fed.begin(round)
    # the rules see to it that the method gets the federation or the network that it takes, and its own state anyway
    server = algorithm.round(fed, server) if round else algorithm.redrawn(algorithm.start(fed), redrawn)  # type: ignore[arg-type]
    return server, time.perf_counter() - begun


def written(recorder: Recorder, fed: Federation, row: dict[str, float], by_client: dict[str, ByClient]) -> None:
    """Record a round, with numbers of clients by the table of the result."""
    recorder.row(row, fed.selected if fed.round else NO_CLIENT)
    for table, numbers in by_client.items():
        recorder.by_client(table, numbers)


def save(recorder: Recorder, checkpoints: CheckpointWriter, *state: Any) -> bool:
    """Write a checkpoint of this state, and before it the rows that wait: a file has every round of its checkpoint.

    Raises RunError where the file is not there any more; the checkpoint is written, where it has a folder, or it stays.
    """
    recorder.flush()
    if recorder.lost:
        raise RunError(lost(recorder, checkpoints, *state))
    return checkpoints.save(*state)


def restored(
    config: Experiment, fed: Federation, saved: Saved, history: dict[str, list[float]], redrawn: int
) -> ServerState:
    """The server's state of a checkpoint, with ``redrawn`` rounds run again; the federation counts on from there.

    UserError where the checkpoint does not fit the run, or f is not what it was.
    """
    with fitting(saved.folder, RunError):
        server, times = saved.server(config.algorithm)
        fed.times_selected[:] = times
        # older checkpoints have no bits
        bits = {f"bits_{way}": 8 * saved.ledger[f"bytes_{way}"] for way in ("up", "down")}
        vars(fed.ledger).update(bits | saved.ledger)
        fed.begin(saved.round)  # before the time of the checkpoint is restored: it counts that of the round again
        fed.restore(saved.simulated, saved.sent, saved.arrays())
        evaluated = saved.round % config.evaluate.every == 0
        now = evaluate(config.algorithm, fed, server)["objective"] if evaluated else math.nan
        server = config.algorithm.redrawn(server, redrawn - saved.redrawn)
    if evaluated:
        before = history["objective"][-1]
        if not abs(now - before) <= 1e-6 * abs(before):
            raise UserError(
                f"the data or the program have changed: after round {saved.round} the objective was {before!r}, "
                f"and now it is {now!r}"
            )
    return server


def counters(fed: Federation, spent: float) -> dict[str, float]:
    """What the round exchanged so far, and the seconds of the round, of which the server saw ``spent``."""
    ledger = fed.ledger
    away = fed.mpi if fed.mpi else fed.slowest  # seconds in which the server did not compute
    return {
        "exchanges": ledger.exchanges,
        "uploads": ledger.uploads,
        "downloads": ledger.downloads,
        "bytes_up": ledger.bytes_up,
        "bytes_down": ledger.bytes_down,
        "bits_up": ledger.bits_up,
        "bits_down": ledger.bits_down,
        "compute_seconds": fed.slowest,
        "client_seconds": fed.computing,
        "server_seconds": max(spent - away, 0.0),
        "comm_seconds": max(fed.mpi - fed.slowest, 0.0),
        **fed.schedule.row(),
    }


def evaluate(algorithm: Algorithm, fed: Federation, server: ServerState) -> dict[str, float]:
    """f, ‖∇f‖² and accuracies at the server's model, and what the algorithm reports of itself."""
    found = fed.evaluate(server.x)
    own = algorithm.report(server, fed.evaluation.recorded(found), fed.m)  # type: ignore[arg-type]
    return fed.evaluation.means(found.sums, fed.m, fed.samples) | own


def evaluated(
    config: Experiment, fed: Federation, server: ServerState, looks: Looks
) -> tuple[dict[str, float], dict[str, ByClient]]:
    """The same, the gap to the optimum where that is known, the seconds that it took; numbers of clients by table."""
    begun = time.perf_counter()
    row = evaluate(config.algorithm, fed, server)
    if config.stop.optimum is not None:
        row["objective_gap"] = gap(row["objective"], config.stop.optimum, fed.dtype)
    by_client = {table: look(server.x) for table, look in looks.items()}
    return row | {"evaluate_seconds": time.perf_counter() - begun}, by_client


def gap(f: float, optimum: float, dtype: Any) -> float:
    """f − f*; RunError where f is below f* by more than rounding can make of it."""
    below = optimum - f
    if below > ROUNDING * np.finfo(dtype).eps * max(abs(f), abs(optimum)):
        raise RunError(
            f"stop.optimum = {optimum!r} is not the least f: the run has come to f = {f!r}, {below:.3g} below it"
        )
    return f - optimum


def remember(history: dict[str, list[float]], row: dict[str, float]) -> None:
    """Add a row to the evaluations that stop rules look back on."""
    for name, value in row.items():
        past = history.setdefault(name, [])
        past.append(value)
        del past[1:-RECENT]


def refuse_divergence(factor: float, f: list[float], round: int, algorithm: Algorithm) -> None:
    """Raise RunError where f is above ``factor`` times its start (0: never)."""
    if factor and f[0] and abs(f[-1]) > factor * abs(f[0]):
        raise RunError(
            f"f diverges: {f[-1]:.3g} in round {round} after {f[0]:.3g} at the start, so "
            f"{steering(algorithm)}; stop.diverged = 0 goes on all the same"
        )
