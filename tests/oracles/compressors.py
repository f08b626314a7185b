"""Compressors of single vectors, one number after the other; draws are those of the client's stream."""

import numpy as np

from mpifed.core.streams import stream


def compress(compressor, x, client, round, call):
    """C(x) of a client in a round's ``call``."""
    n, k = len(x), compressor.get("k")
    rng = stream(0, "clients", client, round, call)
    if compressor["name"] == "topk":
        kept = sorted(range(n), key=lambda j: (-abs(x[j]), j))[:k]
        return np.array([x[j] if j in kept else 0.0 for j in range(n)])
    if compressor["name"] == "randk":
        seed = int(rng.integers(1 << 64, dtype=np.uint64))
        kept = stream(seed, "compression").choice(n, k, replace=False, shuffle=False).tolist()
        return np.array([x[j] * n / k if j in kept else 0.0 for j in range(n)])
    assert compressor["name"] == "randseqk"
    first = int(rng.integers(n))
    return np.array([x[j] * n / k if (j - first) % n < k else 0.0 for j in range(n)])


def omega(compressor, n):
    return n / compressor["k"] - 1
