"""Random streams: one for each purpose, client, round and call, all made from one seed.

A stream is Philox, a counter-based generator, whose key is the seed and the purpose and whose counter starts at
(client, round, call). Streams need no state between rounds, so a checkpoint has none of them to save, and a client
draws the same numbers wherever it lives.
"""

from __future__ import annotations

import numpy as np

PURPOSES = ("data", "partition", "split", "selection", "server", "clients", "model", "system")


def stream(seed: int, purpose: str, *place: int) -> np.random.Generator:
    """The generator of ``purpose`` at ``place`` (up to three whole numbers, e.g. client, round, call)."""
    counter = [0, *place, *(0,) * (3 - len(place))]
    key = np.array([seed, PURPOSES.index(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array(counter, dtype=np.uint64)))
