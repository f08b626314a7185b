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


def user_purpose_number(purpose: str) -> int:
    """Return the number of a purpose that is not in PURPOSES, a hash of its text: 2^63 or above."""
    return int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little") | 1 << 63


class PhiloxKey(np.random.bit_generator.ISeedSequence):
    """A key for Philox, passed as its seed, because numpy draws entropy first for its argument ``key`` (5 µs)."""

    def __init__(self, seed: int, purpose: str) -> None:
        number = PURPOSES.index(purpose) if purpose in PURPOSES else user_purpose_number(purpose)
        self.words = np.array([seed, number], np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Array:
        return self.words


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """Return the random generator of a purpose and a key of up to three whole numbers: client, round, call.

    A purpose is any text. mpifed uses PURPOSES; any other text gives a stream of its own.

        >>> first = mpifed.extend.stream(0, "my noise", 3).standard_normal(2)
        >>> np.array_equal(first, mpifed.extend.stream(0, "my noise", 3).standard_normal(2))
        True
    """
    # The generator counts the first word of the counter up, so a stream has 2⁶⁴ blocks before it would run into that
    # of the next client.
    counter = np.array([0, *key, *(0,) * (3 - len(key))], np.uint64)
    words: Any = PhiloxKey(seed, purpose)
    return np.random.Generator(np.random.Philox(words, counter))


def streams(seed: int, purpose: str, first: Array, *rest: int | Array) -> list[np.random.Generator]:
    """Return ``stream(seed, purpose, i, *rest)`` for each i of ``first``; ``rest``: numbers, or one for each i."""
    key: Any = PhiloxKey(seed, purpose)
    counters = np.zeros((len(first), 4), np.uint64)
    for column, part in enumerate((first, *rest), 1):
        counters[:, column] = part
    return [np.random.Generator(np.random.Philox(key, counter)) for counter in counters]


def hash_numbers(z: Array, *numbers: int | Array) -> Array:
    """Hash 64-bit integers (c,) together with ``numbers``, each a number or an array (c,): (c,)."""
    for number in numbers:
        z = mix_bits(z + GOLDEN + number)
    return z


def mix_bits(z: Any) -> Any:
    """Hash the 64-bit integers of an array or a tensor, elementwise, by the last steps of SplitMix64."""
    # PyTorch has no unsigned 64-bit integers, and >> of signed ones fills in the sign, where SplitMix64 fills in
    # zeros: the masks remove the sign again. Products wrap around modulo 2⁶⁴ in either case.
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * SECOND
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * FIRST
    return z ^ ((z >> 31) & 0x1FFFFFFFF)


def hash_positions(seed: Any, number: int, positions: Any) -> Any:
    """Hash positions, an array or a tensor, together with a seed and a whole number, elementwise."""
    return mix_bits(seed + to_signed_64(number * FIRST) + GOLDEN * positions)


def seed_of_piece(seed: Any, k: int) -> Any:
    """Return the seed for the k-th piece of the samples; for the first one it is ``seed`` itself."""
    return seed + to_signed_64(k * SECOND)


def to_signed_64(number: int) -> int:
    """Reduce an integer modulo 2⁶⁴ to a signed 64-bit integer."""
    return (number + 2**63) % 2**64 - 2**63
