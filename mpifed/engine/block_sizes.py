"""Measured sizes of blocks of samples: the first rounds of a run try some, and the fastest stays.

Blocks of any size keep the order of clients and give the same bits, so a host can cut its samples anew between rounds.
"""

import math
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from mpifed.core.guards import is_user_class
from mpifed.core.processor import BlockSize
from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.features.settings import DEVICES, MEASURED
from mpifed.federation.host import ClientCall, Host
from mpifed.federation.request import FOR_THE_RECORD, Request
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods
from mpifed.federation.transform import ClientBatch
from mpifed.kernels.plan import clients_per_block
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel

SIZES = tuple(1 << k for k in range(18, 25))  # bytes: 256 KB to 16 MB
ENOUGH = 2  # rounds that measure a size, if together they take these seconds …
SECONDS = 0.02
SHARE = 20  # … or are one in 20 of all rounds
GAIN = 0.95  # the first size stays unless another takes less than this fraction of its time

Blocks = tuple[int, ...]  # number of clients in a block, for each padded size of clients


class BlockSizes:
    """Search for the fastest size of blocks on a host; it begins with ``host.block_size`` and replaces that.

    The cost of a round is the CPU seconds of this thread per sample while clients compute; that of a size is the median
    of some rounds. Each host decides for itself; afterwards nothing here is called any more.
    """

    def __init__(self, host: Host, rounds: int) -> None:
        self.host = host
        self.rounds = rounds
        self.ladder, start = list_sizes(host)
        self.trials = search(len(self.ladder), start)
        self.request_handlers = dict(host.request_handlers)
        self.round = 0
        self.warm = math.inf  # the first round, which is not measured
        self.seconds, self.samples = 0.0, 0  # of this round
        self.costs: list[float] = []  # of the rounds of this size: seconds for each sample
        self.spent = 0.0  # seconds of all of them

    def begin(self) -> None:
        """Start measuring with the next round, if there is a choice of sizes."""
        if len(self.ladder) > 1 and self.rounds >= MEASURED:
            next(self.trials)
            computing = {name: verb for name, verb in self.request_handlers.items() if (name,) not in FOR_THE_RECORD}
            self.host.request_handlers |= {name: self.add_clock(verb) for name, verb in computing.items()}

    def add_clock(self, verb: Callable[[Request], ClientCall]) -> Callable[[Request], ClientCall]:
        """Return the verb with a clock that runs while clients compute."""

        def measure(request: Request) -> ClientCall:
            if request.key[0] != self.round:
                self.next_round(request.key[0])
            answer = verb(request)
            begun = time.thread_time()

            def compute(batch: ClientBatch, *args: Any) -> tuple[Any, Any]:
                nonlocal begun
                result = answer(batch, *args)
                ended = time.thread_time()
                self.seconds += ended - begun
                self.samples += int(batch.f.d.sum())
                begun = ended
                return result

            return compute

        return measure

    def next_round(self, round: int) -> None:
        """Close the last round, and try the next size once this one has had enough rounds."""
        # the first round is not measured: it pays for pages, caches and compiled code
        if self.round > self.warm and self.samples:
            self.costs.append(self.seconds / self.samples)
            self.spent += self.seconds
        self.round = round
        self.warm = min(self.warm, round)
        self.seconds, self.samples = 0.0, 0
        maximum = max(1, self.rounds // SHARE)
        if len(self.costs) >= min(ENOUGH, maximum) and (self.spent >= SECONDS or len(self.costs) >= maximum):
            self.next_size(self.costs)
            self.costs = []
            self.spent = 0.0

    def next_size(self, costs: list[float]) -> None:
        """Cut blocks of the next size, or of the final one, and then restore the host's verbs."""
        try:
            position = self.trials.send(costs)
        except StopIteration as end:
            position, fraction = end.value
            self.host.request_handlers = self.request_handlers
            self.host.block_size = final_size(self.host.block_size, self.ladder[position][0], fraction)
        for group, size in zip(self.host.same_size, self.ladder[position][1], strict=True):
            group.cut(size)
        self.host.index_blocks()


def list_sizes(host: Host) -> tuple[list[tuple[int, Blocks]], int]:
    """Return the sizes that make different blocks of a host's clients, rising, and the position of the host's size."""
    first = host.block_size.bytes
    sizes: dict[Blocks, int] = {}
    for size in (first, *SIZES):
        sizes.setdefault(count_clients(host, size), size)
    rising = sorted((size, blocks) for blocks, size in sizes.items())
    return rising, [size for size, _ in rising].index(first)


def count_clients(host: Host, size: int) -> Blocks:
    """Return how many clients a block of about ``size`` bytes has, for each padded size of clients."""
    each = [max(1, group.blocks[0].A[0].nbytes) for group in host.same_size]
    return tuple(
        [min(len(group), clients_per_block(size, one)) for group, one in zip(host.same_size, each, strict=True)]
    )


def search(count: int, start: int) -> Generator[int, list[float], tuple[int, float]]:
    """Walk over positions 0 … count − 1 to one of low cost, from ``start``, in strides of two and then of one.

    Yields positions, is sent what each costs, round by round, and returns one position and its cost as a part of that
    of ``start``. At the end both are measured again, because machines change, and ``start`` stays unless three
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
    fraction = float(max(np.median(other) / np.median(first), np.median(more) / np.median(again)))
    clear = np.quantile(other, 0.75) < np.quantile(first, 0.25)
    return (best, fraction) if clear and fraction < GAIN else (start, 1.0)


def final_size(first: BlockSize, size: int, fraction: float) -> BlockSize:
    """Return the size that stays, with the reason; it took a ``fraction`` of the time of the first."""
    if size == first.bytes:
        return BlockSize(size, f"{first.reason}, and no other size was faster in the first rounds")
    return BlockSize(
        size, f"in the first rounds they took {fraction:.2f} of the time of blocks of {first.bytes:,} bytes"
    )


class MeasuredBlocks(EnginePlugin):
    """Sizes of blocks that the first rounds try; the fastest stays."""

    # No number depends on the measured times: blocks of any size give the same bits.
    supports = Supports.EVERYTHING

    dense = False

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.dense = not data.sparse and data.columns is None
        return setup

    def extend_host(self, host: Host, division: HostDivision) -> None:
        if self.dense and self.measurable(host.setup.kernels):
            BlockSizes(host, division.rounds).begin()

    def measurable(self, kernels: str) -> bool:
        """Return whether blocks can be cut anew at no cost and without changing bits.

        Samples are dense and in memory; the model is linear; no matrices of second derivatives, which order clients by
        another rule; no class of a user, whose bits may depend on blocks.
        """
        problem, algorithm = self.config.problem, self.config.algorithm
        linear = isinstance(problem, LinearModel | Classifier) and "hess" not in required_methods(algorithm)
        of_user = is_user_class(type(problem)) or is_user_class(type(algorithm))
        return linear and kernels not in DEVICES and not of_user and self.config.asynchronous is None
