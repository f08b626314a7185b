"""The round loop: round, evaluate, record, stop."""

import math
import time
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import CheckpointWriter, StoredCheckpoint
from mpifed.experiment.checkpoint_errors import reporting_mismatch, rescue_checkpoint
from mpifed.experiment.progress import Progress
from mpifed.experiment.stopping import StopJudge
from mpifed.features.feature import Callbacks
from mpifed.features.settings import Experiment
from mpifed.federation.callback import ClientTable, restore_callbacks
from mpifed.federation.method import ServerState
from mpifed.federation.participation.selection import EmptyRound
from mpifed.federation.server import Federation
from mpifed.federation.traits import divergence_advice
from mpifed.results.recorder import Recorder

RECENT = 8  # evaluations kept for stop rules, beside the first
ROUNDING = 1e3  # units in the last place that sums over many samples may be wrong by
NO_CLIENT: Array = np.zeros(0, np.int64)


class RunOutcome(NamedTuple):
    """The last state of the server, and how the run ended: ``finished`` or ``stopped``, with the reason."""

    server: ServerState
    status: str
    reason: str


def run_rounds(
    config: Experiment, fed: Federation, recorder: Recorder, bar: Progress, saver: CheckpointWriter, hooks: Callbacks
) -> RunOutcome:
    """Run and record the rounds of ``config`` after the checkpoint; round 0 is the start. RunError if f diverges."""
    stop = config.stop
    saved = saver.saved
    every = config.evaluate.every
    judge = StopJudge(stop, (fed.m, fed.n), fed.evaluation.role, fed.evaluation.validation is not None)
    history = recorder.earlier_rows(every)
    round, elapsed = (-1, 0.0) if saved is None else (saved.round, saved.elapsed)
    server: ServerState | None = None
    reason = None
    if saved is not None:
        server = restore(config, fed, saved, history, saver.replayed, hooks)
        reason = judge.judge_all(history) if history else None
    while reason is None and round < config.rounds:
        round += 1
        server, spent = play_round(config.algorithm, fed, round, server, saver.replayed)
        elapsed += spent
        row = counters(fed, spent) | {"elapsed_seconds": elapsed}
        by_client: dict[str, ClientTable] = {}
        server = end_round(fed, server, hooks)
        if round % every == 0 or round == config.rounds:
            by_client = evaluate_round(config, fed, server, hooks, row)
            remember(history, row)
            reason = judge.judge_last(history)
        record_round(recorder, fed, row, by_client)
        recorder.write_snapshot(server.x, config.record.models)
        bar.show(round, config.rounds, row)
        refuse_divergence(stop.diverged, history["objective"], round, config.algorithm)
        if reason is None and ((signal := fed.stop_signal or bar.stop) or recorder.lost or saver.due(round)):
            is_saved = save(recorder, saver, fed, server, round, elapsed)
            if signal:
                reason = f"{signal} after round {round}"
                return RunOutcome(server, "stopped", f"{reason}; resume goes on" if is_saved else reason)
    assert server is not None  # there is a checkpoint, or round 0
    reason = reason or f"rounds: {config.rounds}"
    if config.checkpoint.keeps_last(reason):
        save(recorder, saver, fed, server, round, elapsed)
    return RunOutcome(server, "finished", reason)


def play_round(
    method: Algorithm, fed: Federation, round: int, server: ServerState | None, replayed: int
) -> tuple[ServerState, float]:
    """Run one round, or the start (``server``: None); return the state of the server and the seconds that this took."""
    begun = time.perf_counter()
    fed.begin(round)
    # rules of features ensure that the method gets the federation or the network that it takes, and its own state
    fed.is_playing = True
    with suppress(EmptyRound):  # which leaves the state as it was
        server = method.round(fed, server) if round else method.replayed_rounds(method.init_server(fed), replayed)  # type: ignore[arg-type]
    fed.is_playing = False
    return server, time.perf_counter() - begun  # type: ignore[return-value]


def end_round(fed: Federation, server: ServerState, hooks: Callbacks) -> ServerState:
    """Return the state that a round ends with, once callbacks have seen it."""
    server = fed.transform_state(server)
    for callback in hooks:
        callback.after_round(fed, server)
    return server


def record_round(recorder: Recorder, fed: Federation, row: dict[str, float], by_client: dict[str, ClientTable]) -> None:
    """Record a round, with numbers of clients by the table of the result."""
    recorder.row(row, fed.selected if fed.round else NO_CLIENT)
    for table, numbers in by_client.items():
        recorder.by_client(table, numbers)


def save(recorder: Recorder, checkpoints: CheckpointWriter, *state: Any) -> bool:
    """Write a checkpoint of this state, and before it the waiting rows: a file has every round of its checkpoint.

    Raises RunError where the result file is gone; the checkpoint is written where its folder is still ours.
    """
    recorder.flush()
    if recorder.lost:
        raise RunError(rescue_checkpoint(recorder, checkpoints, *state))
    return checkpoints.save(*state)


def restore(
    config: Experiment,
    fed: Federation,
    saved: StoredCheckpoint,
    history: dict[str, list[float]],
    replayed: int,
    hooks: Callbacks,
) -> ServerState:
    """Restore the server from a checkpoint, with ``replayed`` rounds run again, and the counters of ``fed``.

    UserError where the checkpoint does not fit the run, or f has changed.
    """
    with reporting_mismatch(saved.folder, RunError):
        server, times = saved.read_server(config.algorithm)
        fed.times_selected[:] = times
        # older checkpoints have no bits
        bits = {f"bits_{way}": 8 * saved.ledger[f"bytes_{way}"] for way in ("up", "down")}
        vars(fed.ledger).update(bits | saved.ledger)
        # before the time of the checkpoint is restored, because begin adds the time of this round
        fed.begin(saved.round)
        arrays = saved.read_arrays()
        restore_callbacks(hooks, arrays)
        fed.restore(saved.simulated, saved.sent, arrays)
        is_evaluated = saved.round % config.evaluate.every == 0
        now = evaluate(config.algorithm, fed, server)["objective"] if is_evaluated else math.nan
        server = config.algorithm.replayed_rounds(server, replayed - saved.redrawn)
    if is_evaluated:
        stored = history["objective"][-1]
        if not abs(now - stored) <= 1e-6 * abs(stored):
            raise UserError(
                f"the data or the program have changed: after round {saved.round} the objective was {stored!r}, "
                f"and now it is {now!r}"
            )
    return server


def counters(fed: Federation, spent: float) -> dict[str, float]:
    """Return the exchanges up to this round, and the seconds of the round, of which the server saw ``spent``."""
    ledger = fed.ledger
    remote = fed.mpi if fed.mpi else fed.slowest  # seconds in which the server did not compute
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
        "server_seconds": max(spent - remote, 0.0),
        "comm_seconds": max(fed.mpi - fed.slowest, 0.0),
        **fed.schedule.row(),
    }


def evaluate(algorithm: Algorithm, fed: Federation, server: ServerState) -> dict[str, float]:
    """Evaluate f, ‖∇f‖² and accuracies at the server's model; add the algorithm's report."""
    evaluation = fed.evaluate(server.x)
    report = algorithm.report(server, fed.evaluation.algorithm_columns(evaluation), fed.m)  # type: ignore[arg-type]
    return fed.evaluation.means(evaluation.sums, fed.m, fed.samples) | report


def evaluate_round(
    config: Experiment, fed: Federation, server: ServerState, hooks: Callbacks, row: dict[str, float]
) -> dict[str, ClientTable]:
    """Add to the row of a round f, the gap to the optimum, if known, and more; return numbers of clients by table."""
    begun = time.perf_counter()
    row |= evaluate(config.algorithm, fed, server) | {"evaluate_seconds": 0.0}  # set last; callbacks may not add it
    if config.stop.optimum is not None:
        row["objective_gap"] = objective_gap(row["objective"], config.stop.optimum, fed.dtype)
    by_client: dict[str, ClientTable] = {}
    for callback in hooks:
        for name, value in callback.on_evaluate(fed, server.x).items():
            if isinstance(value, dict):
                by_client[name] = by_client.get(name, {}) | value
            elif name in row:
                raise UserError(f"{type(callback).__name__} records {name}, which is there already: rename its column")
            else:
                row[name] = value
    for callback in hooks:
        callback.after_evaluation(fed, server.x, row)
    row["evaluate_seconds"] = time.perf_counter() - begun
    return by_client


def objective_gap(f: float, optimum: float, dtype: Any) -> float:
    """Return f − f*; RunError where f is below f* by more than rounding explains."""
    below = optimum - f
    if below > ROUNDING * np.finfo(dtype).eps * max(abs(f), abs(optimum)):
        raise RunError(
            f"stop.optimum = {optimum!r} is not the least f: the run has come to f = {f!r}, {below:.3g} below it"
        )
    return f - optimum


def remember(history: dict[str, list[float]], row: dict[str, float]) -> None:
    """Add a row to the evaluations kept for stop rules."""
    for name, value in row.items():
        past = history.setdefault(name, [])
        past.append(value)
        del past[1:-RECENT]


def refuse_divergence(factor: float, f: list[float], round: int, algorithm: Algorithm) -> None:
    """Raise RunError where f is above ``factor`` times its start (0: never)."""
    if factor and f[0] and abs(f[-1]) > factor * abs(f[0]):
        raise RunError(
            f"f diverges: {f[-1]:.3g} in round {round} after {f[0]:.3g} at the start, so "
            f"{divergence_advice(algorithm)}; stop.diverged = 0 goes on all the same"
        )
