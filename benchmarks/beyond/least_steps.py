"""Step sizes for leasttime.toml: the best of a grid up to 2/L, by plain loops over arrivals, in minutes.

python -m benchmarks.beyond.least_steps
"""

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed.extend import Array

N = 100
NOISE = 0.01
EPS = 1e-3
R = round(N * NOISE**2 / EPS)  # σ²/ε: the delay threshold of Ringmaster, the gradients in a step of Rennala
STEPS = [2.0 ** (1 - k / 4) for k in range(49)]  # from 2/L, where L of A is 1, to 2⁻¹¹
SEEDS = (100, 101, 102)
SPREAD = 0.1
LATEST = 500.0  # seconds after which a loop gives up


class Arrival(NamedTuple):
    """A gradient g of client i that arrives at ``time``, from the model before step ``begun``."""

    time: float
    i: int
    begun: int
    g: Array


class Loop:
    """m clients, of which the i-th needs √i seconds for a gradient; one that has arrived begins anew from the model."""

    def __init__(self, m: int, spread: float, seed: int) -> None:
        self.m, self.rng = m, np.random.default_rng(seed)
        self.b = np.zeros((m, N))
        self.b[:, 0] = -0.25
        half = spread * self.rng.standard_normal((m // 2, N)) if spread else np.zeros((m // 2, N))
        self.b[: m // 2] += half
        self.b[m - m // 2 :] -= half[::-1]
        self.mean = self.b.mean(axis=0)
        self.x = np.zeros(N)
        self.k = 0

    def arrivals(self) -> Iterator[Arrival]:
        """Gradients as they arrive, of equal times the lower numbers first; x and k may change meanwhile."""
        under_way: list[Any] = [(math.sqrt(i + 1), i, 0, self.x) for i in range(self.m)]
        heapq.heapify(under_way)
        while under_way[0][0] < LATEST:
            time, i, begun, x = heapq.heappop(under_way)
            noise = NOISE * self.rng.standard_normal(N)
            yield Arrival(time, i, begun, product(x) - self.b[i] + noise)
            heapq.heappush(under_way, (time + math.sqrt(i + 1), i, self.k, self.x))

    def step(self, change: Array) -> None:
        self.x = self.x + change
        self.k += 1

    def square(self) -> float:
        g = product(self.x) - self.mean
        return float(g @ g)


def product(x: Array) -> Array:
    """A x with A = ¼ tridiag(−1, 2, −1)."""
    y = x / 2
    y[1:] -= x[:-1] / 4
    y[:-1] -= x[1:] / 4
    return y


def asynchronous(loop: Loop, gamma: float, delayed: bool = False, most: float = math.inf) -> Iterator[float]:
    """Plain asynchronous SGD, with steps that are shorter for old models, or without what is ``most`` steps old."""
    for time, _, begun, g in loop.arrivals():
        age = loop.k - begun
        if age < most:
            loop.step(-gamma * g * (loop.m / max(loop.m, age) if delayed else 1.0))
            yield time


def adaptive(loop: Loop, gamma: float) -> Iterator[float]:
    return asynchronous(loop, gamma, delayed=True)


def ringmaster(loop: Loop, gamma: float) -> Iterator[float]:
    return asynchronous(loop, gamma, most=R)


def rennala(loop: Loop, gamma: float) -> Iterator[float]:
    found: list[Array] = []
    for time, _, begun, g in loop.arrivals():
        found += [g] if begun == loop.k else []
        if len(found) == R:
            loop.step(-gamma * np.mean(found, axis=0))
            found = []
            yield time


class Table:
    """Sums of the gradients of each client, and how many these are."""

    def __init__(self, m: int) -> None:
        self.sums = np.zeros((m, N))
        self.counts = np.zeros(m)

    def add(self, i: int, g: Array) -> None:
        self.sums[i] += g
        self.counts[i] += 1

    @property
    def full(self) -> bool:
        return bool(self.counts.all())

    @property
    def mean(self) -> Array:
        """The mean over clients of the means of each: (n,)."""
        return np.asarray((self.sums / self.counts[:, None]).mean(axis=0))


def malenia(loop: Loop, gamma: float) -> Iterator[float]:
    table = Table(loop.m)
    for time, i, begun, g in loop.arrivals():
        if begun == loop.k:
            table.add(i, g)
        if table.full:
            loop.step(-gamma * table.mean)
            table = Table(loop.m)
            yield time


def ringleader(loop: Loop, gamma: float) -> Iterator[float]:
    table = Table(loop.m)
    later = Table(loop.m)
    turn = np.zeros(loop.m, bool)
    for time, i, _, g in loop.arrivals():
        (later if turn[i] else table).add(i, g)
        if turn[i] or not table.full:
            continue
        loop.step(-gamma * table.mean)
        turn[i] = True
        if turn.all():
            # a round of the record ends here
            yield time
            table = later
            later = Table(loop.m)
            turn[:] = False


Method = Callable[[Loop, float], Iterator[float]]
ONE: tuple[Method, ...] = (ringmaster, rennala, adaptive, asynchronous)
UNLIKE: tuple[Method, ...] = (malenia, ringleader, asynchronous)


def seconds(method: Method, m: int, spread: float, gamma: float, seed: int) -> float:
    """Simulated seconds to ‖∇f‖² <= EPS, looked at as often as clients come in a tenth of a second; inf: never."""
    loop = Loop(m, spread, seed)
    often = 1 if method in (rennala, malenia, ringleader) else max(1, round(m**0.5 / 5))
    with np.errstate(over="ignore", invalid="ignore"):
        for k, time in enumerate(method(loop, gamma)):
            if k % often == 0 and not EPS < (square := loop.square()) < 1e3:
                return time if square <= EPS else math.inf
    return math.inf


def best(method: Method, m: int, spread: float) -> tuple[float, float]:
    """The mean of the seconds over seeds that a step size makes least, and that step size."""
    tried = [(float(np.mean([seconds(method, m, spread, gamma, seed) for seed in SEEDS])), gamma) for gamma in STEPS]
    return min(tried)


if __name__ == "__main__":
    for spread, methods, numbers in ((0.0, ONE, (10, 30, 100, 300, 1000)), (SPREAD, UNLIKE, (10, 30, 100))):
        for m in numbers:
            for method in methods:
                least, gamma = best(method, m, spread)
                print(f"spread {spread:g}  m {m:4}  {method.__name__:12}  γ = {gamma:<12g}  {least:.1f} s")
