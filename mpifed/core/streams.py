"""Random streams: one for each purpose, client, round and call, all derived from one seed.

A stream is Philox, a counter-based generator (Salmon et al. 2011, doi:10.1145/2063384.2063405). Its key is the seed and
the purpose; its counter starts at the stream key, such as (client, round, call). So a client draws the same numbers on
every rank, and a checkpoint need not save the state of any generator.
"""

import hashlib
from typing import Any

import numpy as np

from mpifed.core.typing import Array

GOLDEN = -7046029254386353131  # odd numbers with bits that look random, from SplitMix64, modulo 2⁶⁴
FIRST = -4658895280553007687
SECOND = -7723592293110705685
NAMES = "data partition split selection server clients model system tuning noise masks compression graph"
PURPOSES = tuple(NAMES.split())


def own_number(purpose: str) -> int:
    """The number of a purpose that is no word of PURPOSES, from a checksum of its text: 2^63 or above."""
    return int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little") | 1 << 63


class PhiloxKey(np.random.bit_generator.ISeedSequence):
    """A key for Philox, given as its seed: with the argument ``key`` numpy asks the system for entropy first (5 µs)."""

    def __init__(self, seed: int, purpose: str) -> None:
        number = PURPOSES.index(purpose) if purpose in PURPOSES else own_number(purpose)
        self.words = np.array([seed, number], np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Array:
        return self.words


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for a purpose and a key of up to three whole numbers: client, round, call.

    A purpose is any text. Those of the program are PURPOSES; a text of your own never gives a stream of these.

        >>> first = mpifed.stream(0, "my noise", 3).standard_normal(2)
        >>> np.array_equal(first, mpifed.stream(0, "my noise", 3).standard_normal(2))
        True
    """
    # The first word of the counter is left to the generator, which counts it up: a stream of 2⁶⁴ blocks before it
    # would run into that of the next client.
    counter = np.array([0, *key, *(0,) * (3 - len(key))], np.uint64)
    words: Any = PhiloxKey(seed, purpose)
    return np.random.Generator(np.random.Philox(words, counter))


def streams(seed: int, purpose: str, first: Array, *rest: int | Array) -> list[np.random.Generator]:
    """``stream(seed, purpose, i, *rest)`` for each i of ``first``, in less time; ``rest``: one number, or one each."""
    key: Any = PhiloxKey(seed, purpose)
    counters = np.zeros((len(first), 4), np.uint64)
    for column, part in enumerate((first, *rest), 1):
        counters[:, column] = part
    return [np.random.Generator(np.random.Philox(key, counter)) for counter in counters]


def hashed(z: Array, *numbers: int | Array) -> Array:
    """A hash of whole numbers of 64 bits (c,) and of further ones, each for all or one each: (c,)."""
    for number in numbers:
        z = mixed(z + GOLDEN + number)
    return z


def mixed(z: Any) -> Any:
    """A hash of whole numbers of 64 bits, an array or a tensor: the last steps of SplitMix64."""
    # PyTorch has no unsigned 64 bits, so that numbers are signed, and >> fills in their sign. SplitMix64 fills in
    # zeros: the masks take the sign away again. Products wrap around modulo 2⁶⁴ alike in both.
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * SECOND
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * FIRST
    return z ^ ((z >> 31) & 0x1FFFFFFFF)


def wrapped(number: int) -> int:
    """A whole number modulo 2⁶⁴, as a signed one of 64 bits."""
    return (number + 2**63) % 2**64 - 2**63
