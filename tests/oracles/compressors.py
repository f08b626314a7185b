"""Compressors of single vectors, one number after the other; draws are those of the client's stream."""

import numpy as np

from mpifed.core.streams import stream


def compress(compressor, x, client, round, call):
    """C(x) of a client in a round's ``call``."""
    return sent(compressor, x, stream(0, "clients", client, round, call))


def sent(compressor, x, rng):
    """C(x), with the draws of a generator."""
    n, k = len(x), compressor.get("k")
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


def differences(compressor, parts, round):
    """C of the rows of each of the ``parts`` (m, n) in turn, drawn from the node's stream of a round; contractive."""
    scale = 1.0 if compressor["name"] == "topk" else compressor["k"] / parts[0].shape[1]
    rngs = [stream(0, "clients", i, round, 0) for i in range(len(parts[0]))]
    return [scale * np.array([sent(compressor, x, rng) for x, rng in zip(X, rngs, strict=True)]) for X in parts]
