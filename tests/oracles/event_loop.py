"""An asynchronous run as a loop over events: each upload is computed when its client begins, one after the other.

The server takes a step with the first uploads by time, of equal times by client number, and with those that would
otherwise be more than ``staleness`` steps old. Clients that have arrived begin anew with the next step, or within this
one where the server waits for more; so do those that a method lets drop their work at its beginning.
"""

import heapq
from typing import NamedTuple


class Step(NamedTuple):
    """What happened in a step: who arrived, rising, how old the uploads were, as they came, and the time."""

    arrived: list[int]
    ages: list[int]
    seconds: float


def run(method, duration, steps, arrivals, staleness=None):
    """The steps of a ``method`` with m clients; ``duration(i, count)`` of client i's upload, counted from 0.

    ``method.begin(i)`` is the upload that client i makes of what the server has now, ``method.step(uploads, ages)``
    moves the server, from uploads by client; it returns False where the step needs more of them. Clients drop what they
    began ``age`` steps ago where ``method.drops(age)``.
    """
    heap = []
    free = list(range(method.m))
    counts = [0] * method.m
    clock = 0.0
    found = []
    for k in range(steps):
        free += [event[1] for event in heap if method.drops(k - event[2])]
        heap = [event for event in heap if not method.drops(k - event[2])]
        heapq.heapify(heap)
        found.append(Step([], [], clock))
        more = True
        while more:
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
            more = method.step({i: upload for _, i, _, upload in events}, ages) is False
            found[-1] = Step(sorted({*found[-1].arrived, *free}), found[-1].ages + ages, clock)
    return found
