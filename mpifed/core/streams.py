"""Random streams: one for each purpose, client, round and call, all derived from one seed.

A stream is Philox, a counter-based generator (Salmon et al. 2011, doi:10.1145/2063384.2063405). Its key is the seed and
the purpose; its counter starts at the stream key, such as (client, round, call). So a client draws the same numbers on
every rank, and a checkpoint need not save the state of any generator.
"""

from __future__ import annotations

import numpy as np

PURPOSES = ("data", "partition", "split", "selection", "server", "clients", "model", "system", "tuning")


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for a purpose, one of PURPOSES, and a key of up to three whole numbers: client, round, call."""
    counter = [0, *key, *(0,) * (3 - len(key))]
    philox_key = np.array([seed, PURPOSES.index(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=philox_key, counter=np.array(counter, dtype=np.uint64)))
