"""Random streams: the same key gives the same numbers, any other key different ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mpifed.core.streams import PURPOSES, stream


def test_a_stream_is_its_key():
    first, again = (stream(3, "clients", 5, 2, 1).standard_normal(9) for _ in range(2))
    assert first.tobytes() == again.tobytes()


def test_streams_of_different_keys_differ():
    keys = [(seed, purpose, *key) for seed in (0, 1) for purpose in PURPOSES for key in product(range(3), repeat=3)]
    drawn = [stream(*key).integers(2**63, size=2).tobytes() for key in keys]
    assert len(set(drawn)) == len(keys)


def test_keys_are_independent_of_how_much_other_streams_drew():
    stream(0, "clients", 1).standard_normal(10**5)
    assert stream(0, "clients", 2).random() == stream(0, "clients", 2).random()
    counts = np.bincount(stream(0, "clients", 2).integers(10, size=10**5), minlength=10)
    assert abs(counts - 10**4).max() < 500  # five standard deviations


def test_an_unknown_purpose_is_refused():
    with pytest.raises(ValueError, match="not in tuple"):
        stream(0, "weather")
