"""Sizes of blocks of samples, measured while a run goes on: its first rounds try some, and the fastest stays.

Blocks of any size have the clients in the same order and give the same bits, so a host can cut its samples anew between
two rounds.
"""

import math
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from mpifed.core.processor import BlockSize
from mpifed.features.settings import MEASURED
from mpifed.federation.host import Answer, Host
from mpifed.federation.request import FOR_THE_RECORD, Request
from mpifed.federation.stage import Visit
from mpifed.kernels.plan import clients_in

SIZES = tuple(1 << k for k in range(18, 25))  # bytes: 256 KB to 16 MB
ENOUGH = 2  # rounds of a size that say how fast it is, if they take these seconds together …
SECONDS = 0.02
SHARE = 20  # … or are one in so many of all rounds
GAIN = 0.95  # the first size stays unless another takes less than this part of its time

Blocks = tuple[int, ...]  # the clients of a block, for each padded size of clients


class BlockSizes:
    """What tries sizes of blocks on a host that begins with ``host.block_size``, and at the end replaces that.

    A round is judged by the CPU seconds of this thread while clients compute, for each of their samples, and a size by
    the median of some rounds. Each host decides for itself, and then nothing here is called any more.
    """

    def __init__(self, host: Host, rounds: int) -> None:
        self.host = host
        self.rounds = rounds
        self.ladder, start = ladder(host)
        self.trials = search(len(self.ladder), start)
        self.verbs = dict(host.verbs)
        self.round = 0
        self.warm = math.inf  # the first round, which is not measured
        self.seconds, self.samples = 0.0, 0  # of this round
        self.costs: list[float] = []  # of the rounds of this size: seconds for each sample
        self.spent = 0.0  # seconds of all of them

    def begin(self) -> None:
        """Measure from the next round on, if there is a choice."""
        if len(self.ladder) > 1 and self.rounds >= MEASURED:
            next(self.trials)
            computing = {name: verb for name, verb in self.verbs.items() if (name,) not in FOR_THE_RECORD}
            self.host.verbs |= {name: self.timed(verb) for name, verb in computing.items()}

    def timed(self, verb: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        """The same verb, with a clock that runs while clients compute."""

        def measured(request: Request) -> Answer:
            if request.key[0] != self.round:
                self.next_round(request.key[0])
            answer = verb(request)
            begun = time.thread_time()

            def clocked(visit: Visit, *args: Any) -> tuple[Any, Any]:
                nonlocal begun
                done = answer(visit, *args)
                ended = time.thread_time()
                self.seconds += ended - begun
                self.samples += int(visit.f.d.sum())
                begun = ended
                return done

            return clocked

        return measured

    def next_round(self, round: int) -> None:
        """Close the round before, and go on to another size where this one has had enough of them."""
        # the first round is not measured: it pays for pages, caches and compiled code
        if self.round > self.warm and self.samples:
            self.costs.append(self.seconds / self.samples)
            self.spent += self.seconds
        self.round = round
        self.warm = min(self.warm, round)
        self.seconds, self.samples = 0.0, 0
        most = max(1, self.rounds // SHARE)
        if len(self.costs) >= min(ENOUGH, most) and (self.spent >= SECONDS or len(self.costs) >= most):
            self.next_size(self.costs)
            self.costs = []
            self.spent = 0.0

    def next_size(self, costs: list[float]) -> None:
        """Cut blocks of the next size, or of the one that stays, whose verbs are the host's own again."""
        try:
            position = self.trials.send(costs)
        except StopIteration as end:
            position, share = end.value
            self.host.verbs = self.verbs
            self.host.block_size = settled(self.host.block_size, self.ladder[position][0], share)
        for group, size in zip(self.host.same_size, self.ladder[position][1], strict=True):
            group.cut(size)
        self.host.lay()


def ladder(host: Host) -> tuple[list[tuple[int, Blocks]], int]:
    """The sizes that make different blocks of the clients of a host, rising, and the position of the host's own."""
    own = host.block_size.bytes
    found: dict[Blocks, int] = {}
    for size in (own, *SIZES):
        found.setdefault(blocks_of(host, size), size)
    rising = sorted((size, blocks) for blocks, size in found.items())
    return rising, [size for size, _ in rising].index(own)


def blocks_of(host: Host, size: int) -> Blocks:
    """How many clients a block of about ``size`` bytes has, for each padded size of clients."""
    each = [max(1, group.blocks[0].A[0].nbytes) for group in host.same_size]
    return tuple([min(len(group), clients_in(size, one)) for group, one in zip(host.same_size, each, strict=True)])


def search(count: int, start: int) -> Generator[int, list[float], tuple[int, float]]:
    """Walk over positions 0 … count − 1 to one of low cost, from ``start``, in strides of two and then of one.

    Yields positions, is sent what each costs, round by round, and returns one position and its cost as a part of that
    of ``start``. At the end both are asked for again, whatever has changed meanwhile, and ``start`` stays unless three
    quarters of the other's rounds cost less than three quarters of its own: rounds of few selected clients differ.
    """
    costs = {start: (yield start)}
    best = start
    for way in (2, -2, -1, 1):
        while 0 <= best + way < count:
            if best + way not in costs:
                costs[best + way] = yield best + way
            if np.median(costs[best + way]) >= np.median(costs[best]):
                break
            best += way
    if best == start:
        return start, 1.0
    again = yield start
    more = yield best
    first, other = costs[start] + again, costs[best] + more
    share = float(max(np.median(other) / np.median(first), np.median(more) / np.median(again)))
    clear = np.quantile(other, 0.75) < np.quantile(first, 0.25)
    return (best, share) if clear and share < GAIN else (start, 1.0)


def settled(first: BlockSize, size: int, share: float) -> BlockSize:
    """The size that stays, and why; it took a share of the time of the first."""
    if size == first.bytes:
        return BlockSize(size, f"{first.reason}, and no other size was faster in the first rounds")
    return BlockSize(size, f"in the first rounds they took {share:.2f} of the time of blocks of {first.bytes:,} bytes")
