"""Random streams: the same key gives the same numbers, any other key different ones."""

import pickle
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.streams import PURPOSES, stream, streams

NUMBER = st.one_of(st.integers(0, 20), st.integers(0, 2**64 - 1))


def test_streams_of_different_keys_differ():
    keys = [(seed, purpose, *key) for seed in (0, 1) for purpose in PURPOSES for key in product(range(3), repeat=3)]
    drawn = [stream(*key).integers(2**63, size=2).tobytes() for key in keys]
    assert len(set(drawn)) == len(keys)
    assert stream(0, "weather").integers(2**63, size=2).tobytes() not in drawn


@given(seed=NUMBER, purpose=st.sampled_from(PURPOSES), key=st.lists(NUMBER, max_size=3))
def test_a_stream_is_philox_with_this_key_and_counter(seed, purpose, key):
    """As numpy defines it: results of earlier versions can be computed again."""
    counter = np.array([0, *key, *(0,) * (3 - len(key))], np.uint64)
    philox = np.random.Philox(key=np.array([seed, PURPOSES.index(purpose)], np.uint64), counter=counter)
    assert stream(seed, purpose, *key).bit_generator.random_raw(9).tobytes() == philox.random_raw(9).tobytes()


@given(seed=NUMBER, first=st.lists(NUMBER, max_size=5), rest=st.lists(NUMBER, max_size=2))
def test_the_streams_of_many_clients_are_those_of_each(seed, first, rest):
    many = streams(seed, "clients", np.array(first, np.uint64), *rest)
    assert [rng.bytes(40) for rng in many] == [stream(seed, "clients", i, *rest).bytes(40) for i in first]


def test_a_stream_goes_on_after_a_copy_and_whatever_other_streams_drew():
    rng = stream(5, "server", 1)
    rng.random(7)
    copied = pickle.loads(pickle.dumps(rng))
    assert copied.random(9).tobytes() == rng.random(9).tobytes()
    alone = stream(0, "clients", 2).random()
    stream(0, "clients", 1).standard_normal(10**5)
    assert stream(0, "clients", 2).random() == alone
    counts = np.bincount(stream(0, "clients", 2).integers(10, size=10**5), minlength=10)
    assert abs(counts - 10**4).max() < 500  # five standard deviations
