"""An asynchronous run as a loop over events: each upload is computed when its client begins, one after the other.

The server takes a step with the first uploads by time, of equal times by client number, and with those that would
otherwise be more than ``staleness`` steps old. Clients that have arrived begin anew with the next step.
"""

import heapq
from typing import NamedTuple


class Step(NamedTuple):
    """What happened in a step: who arrived, rising, how old the uploads were, and the time."""

    arrived: list[int]
    ages: list[int]
    seconds: float


def run(method, duration, steps, arrivals, staleness=None):
    """The steps of a ``method`` with m clients; ``duration(i, count)`` of client i's upload, counted from 0.

    ``method.begin(i)`` is the upload that client i makes of what the server has now, ``method.step(uploads, ages)``
    moves the server, from uploads by client.
    """
    heap = []
    free = list(range(method.m))
    counts = [0] * method.m
    clock = 0.0
    found = []
    for k in range(steps):
        for i in free:
            heapq.heappush(heap, (clock + duration(i, counts[i]), i, k, method.begin(i)))
            counts[i] += 1
        events = [heapq.heappop(heap) for _ in range(arrivals)]
        if staleness is not None:
            events += [event for event in heap if k - event[2] >= staleness]
            heap = [event for event in heap if k - event[2] < staleness]
            heapq.heapify(heap)
        clock = max(clock, *(due for due, *_ in events))
        events.sort(key=lambda event: event[1])
        free, ages = [i for _, i, _, _ in events], [k - begun for _, _, begun, _ in events]
        method.step({i: upload for _, i, _, upload in events}, ages)
        found.append(Step(free, ages, clock))
    return found
