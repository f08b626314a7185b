"""One repetition of ``benchmarks.speed.networks``: ours, the plain loop and vmap in turn, once their models agree."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.speed.models import Case
from benchmarks.speed.network_runs import deviation, ours, samples, start, study
from benchmarks.speed.plain_networks import LOOPS, batched, loaded, shuffled, sliced

GROUP = 25  # clients of a pass of vmap, of 5, 10, 25 and 50 the best for MLP on an AMD EPYC with 512 KB of L2


class Turn(NamedTuple):
    """One repetition: CPU seconds of a round of ours, a late one, the loop and vmap; then of evaluating."""

    ours: float
    late: float
    loop: float
    vmap: float
    ours_evaluating: float
    loop_evaluating: float
    deviation: float


class Measured(NamedTuple):
    """What is measured."""

    case: Case
    problem: str
    method: str
    rounds: int
    overrides: tuple[str, ...] = ()
    loader: bool = False


def prepare(job: Measured) -> Callable[[], Turn]:
    """A repetition, to be run, after the models have been compared."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    case, clients = job.case, range(job.case.clients)
    setup = study(case, job.method, job.rounds, job.problem, job.overrides)
    x, parts = start(setup), samples(setup, case)
    make = LOOPS[job.method]
    away = deviation(case, job.method, job.problem, job.overrides)
    loop = make(case.make(), x, parts, (loaded if job.loader else sliced)(parts))
    together = batched(case.make())
    A, b = (torch.stack([part[k] for part in parts]) for k in range(2))

    def vmapped() -> None:
        for group in torch.arange(len(A)).split(GROUP):
            together(loop.server, *shuffled(A[group], b[group]))

    def run() -> Turn:
        mine = ours(setup, time.process_time)
        plain = clock(lambda: loop.round(clients), job.rounds - 1)
        bound = clock(vmapped, job.rounds - 1) if job.method == "fedavg" else np.nan
        return Turn(mine.round, mine.late, plain, bound, mine.evaluating, clock(loop.evaluate, 1), away)

    return run


def clock(job: Callable[[], object], count: int) -> float:
    """CPU seconds of a call, after one that warms up."""
    job()
    begun = time.process_time()
    for _ in range(count):
        job()
    return (time.process_time() - begun) / count
