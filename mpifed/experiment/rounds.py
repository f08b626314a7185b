"""The round loop: evaluate, record, stop, round."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mpifed.core.errors import Trouble, UserError
from mpifed.experiment.checkpoint import Keeper, Saved
from mpifed.experiment.config import Experiment
from mpifed.experiment.progress import Progress
from mpifed.federation.server import Federation, later
from mpifed.results.recorder import Recorder

FEW = 8  # measurements that stop rules look back on, beside the first


def rounds(
    config: Experiment,
    fed: Federation,
    recorder: Recorder,
    progress: Progress,
    keeper: Keeper,
    saved: Saved | None = None,
) -> tuple[Any, str, str]:
    """Run the rounds of ``config``, after those of ``saved``, and record each.

    The last server state, the status and the reason of stopping. Raises Trouble where numbers are not finite or f diverges.
    """
    algorithm, m, n = config.algorithm, fed.m, fed.n
    history = recorder.history(config.evaluate.every)
    kept = 0.0  # seconds of the last measuring that the next round is charged with, if it can
    reason = None
    if saved is None:
        first = 0
        begun = time.perf_counter()
        server = algorithm.start(fed)
        elapsed = time.perf_counter() - begun
        row = times(fed, elapsed, elapsed)
    else:
        first, elapsed = saved.round + 1, saved.elapsed
        server, round = restore(saved, algorithm, fed), saved.round
        if round % config.evaluate.every == 0:
            same(history["objective"][-1], measure(algorithm, fed, server)["objective"], round)
        reason = config.stop.reason(history, m, n) if history else None
        if reason:
            return server, "finished", reason
    for round in range(first, config.rounds + 1):
        if round:
            begun = time.perf_counter()
            fed.begin(round)
            server = algorithm.round(fed, server)
            spent = time.perf_counter() - begun
            known = later(fed.seconds[:, 0], fed.seconds[:, 2])
            elapsed += spent + known
            row = times(fed, spent, elapsed)
            kept = max(kept - known, 0.0)
        if round % config.evaluate.every == 0 or round == config.rounds:
            begun = time.perf_counter()
            row |= measure(algorithm, fed, server)
            if config.stop.optimum is not None:
                row["objective_gap"] = row["objective"] - config.stop.optimum
            row["evaluate_seconds"] = time.perf_counter() - begun + kept
            kept = fed.kept
            for key, value in row.items():
                past = history.setdefault(key, [])
                past.append(value)
                del past[1:-FEW]
            reason = config.stop.reason(history, m, n)
            if not reason and round < config.rounds:
                row["evaluate_seconds"] -= kept
        recorder.row(row, fed.chosen if round else np.zeros(0, np.int64))
        progress.show(round, config.rounds, row)
        diverged(config.stop.diverged, history["objective"], round, fed.steering)
        if reason:
            break
        if (asked := fed.asked) or keeper.due(round):
            recorder.flush()
            written = keeper.save(fed, server, round, elapsed)
            if asked:
                return server, "stopped", f"{asked} after round {round}" + ("; resume goes on" if written else "")
    if keeper.options.keep:
        keeper.save(fed, server, round, elapsed)
    return server, "finished", reason or f"rounds: {config.rounds}"


def restore(saved: Saved, algorithm: Any, fed: Federation) -> Any:
    """The server's state of a checkpoint; the federation counts on from there."""
    server, fed.times_selected = saved.server(algorithm)
    vars(fed.ledger).update(saved.ledger)
    if fed.devices is not None:
        fed.devices.seconds = saved.simulated
    return server


def diverged(factor: float, f: list[float], round: int, steering: str) -> None:
    """Stop where f is above ``factor`` times its start (0: never)."""
    if factor and f[0] and abs(f[-1]) > factor * abs(f[0]):
        raise Trouble(
            f"f diverges: {f[-1]:.3g} in round {round} after {f[0]:.3g} at the start, so look at {steering}; "
            "stop.diverged = 0 goes on all the same"
        )


def same(before: float, now: float, round: int) -> None:
    """Refuse to go on where f is not what it was after ``round``."""
    if not abs(now - before) <= 1e-6 * abs(before):
        raise UserError(
            f"the data or the program have changed: after round {round} the objective was {before!r}, "
            f"and now it is {now!r}"
        )


def measure(algorithm: Any, fed: Federation, server: Any) -> dict[str, float]:
    """f and ‖∇f‖² at the server's model, and what the algorithm says of itself."""
    value, weighted, total, *watches = fed.measure(server.x)
    gradient, rest = total / fed.m, [float(watched) for watched in watches]
    row = {
        "objective": float(value) / fed.m,
        "objective_samples": float(weighted) / fed.samples,
        "grad_norm_sq": float(np.vecdot(gradient, gradient)),
    }
    if fed.problem.has("predict"):
        accuracy, right, tested, *rest = rest
        row |= {"accuracy": accuracy / fed.m, "accuracy_pooled": right / tested}
    if algorithm.personal:
        own = ["personal_objective"] + ["personal_accuracy"] * ("accuracy" in row)
        row |= {name: rest.pop(0) / fed.m for name in own}
    watched = dict(zip(algorithm.watches, rest, strict=True))
    if algorithm.extremes:
        largest = np.ravel(fed.inspect(algorithm.extreme, "max")).tolist()
        watched |= dict(zip(algorithm.extremes, largest, strict=True))
    return row | algorithm.report(server, watched, fed.m)


def times(fed: Federation, spent: float, elapsed: float) -> dict[str, float]:
    """The counters and seconds of a round."""
    compute, known = fed.seconds[:, 0], fed.seconds[:, 2]
    slowest = float(compute.max(initial=0.0))
    busy = fed.mpi if fed.mpi else slowest
    ledger = fed.ledger
    return {
        "exchanges": ledger.exchanges,
        "uploads": ledger.uploads,
        "downloads": ledger.downloads,
        "bytes_up": ledger.bytes_up,
        "bytes_down": ledger.bytes_down,
        "compute_seconds": float((compute + known).max(initial=0.0)),
        "client_seconds": float((compute + known).sum()),
        "server_seconds": max(spent - busy, 0.0),
        "comm_seconds": max(fed.mpi - slowest, 0.0),
        "elapsed_seconds": elapsed,
        **({} if fed.devices is None else fed.devices.row()),
    }
