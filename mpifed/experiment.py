"""The round loop: evaluate, record, stop, round."""
from __future__ import annotations

import time
from typing import Any

import numpy as np

from mpifed.config import Experiment
from mpifed.federation import Federation, later
from mpifed.progress import Progress
from mpifed.record import Recorder


def rounds(config: Experiment, fed: Federation, recorder: Recorder, progress: Progress) -> tuple[Any, str, str]:
    """Run the rounds of ``config`` and record each; the last server state, the status and the reason of stopping."""
    algorithm, m, n = config.algorithm, fed.m, fed.n
    history: dict[str, list[float]] = {}
    begun = time.perf_counter()
    server = algorithm.start(fed)
    elapsed = time.perf_counter() - begun
    row = times(fed, elapsed, elapsed)
    kept = 0.0                                # seconds of the last measuring that the next round is charged with, if it can
    reason = None
    for round in range(config.rounds + 1):
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
            row["evaluate_seconds"] = time.perf_counter() - begun + kept
            kept = fed.kept
            for key, value in row.items():
                history.setdefault(key, []).append(value)
            reason = config.stop.reason(history, m, n)
            if not reason and round < config.rounds:
                row["evaluate_seconds"] -= kept
        recorder.row(row, fed.chosen if round else np.zeros(0, np.int64))
        progress.show(round, config.rounds, row)
        if reason:
            break
    return server, "finished", reason or f"rounds: {config.rounds}"


def measure(algorithm: Any, fed: Federation, server: Any) -> dict[str, float]:
    """f and ‖∇f‖² at the server's model, and what the algorithm says of itself."""
    value, weighted, total, *watches = fed.measure(server.x)
    gradient, rest = total / fed.m, [float(watched) for watched in watches]
    row = {"objective": float(value) / fed.m, "objective_samples": float(weighted) / fed.samples,
           "grad_norm_sq": float(np.vecdot(gradient, gradient))}
    if hasattr(fed.problem, "predict"):
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
        "exchanges": ledger.exchanges, "uploads": ledger.uploads, "downloads": ledger.downloads,
        "bytes_up": ledger.bytes_up, "bytes_down": ledger.bytes_down,
        "compute_seconds": float((compute + known).max(initial=0.0)), "client_seconds": float((compute + known).sum()),
        "server_seconds": max(spent - busy, 0.0), "comm_seconds": max(fed.mpi - slowest, 0.0), "elapsed_seconds": elapsed,
    }
