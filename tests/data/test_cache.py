"""The cache of data sets: made once, as long as there is room."""

import numpy as np

from mpifed.data.cache import Cache, size_in_bytes
from mpifed.data.dataset import Data
from mpifed.data.sources.linreg_noniid import LinregNoniid
from tests.helpers.data_files import write


def test_data_sets_are_made_once_as_long_as_there_is_room_and_keep_names_notes_and_values(monkeypatch, tmp_path):
    made = []
    plain = LinregNoniid.load
    monkeypatch.setattr(LinregNoniid, "load", lambda self, *words: made.append(words) or plain(self, *words))
    source = LinregNoniid(clients=4, features=3, least=2, most=4)
    fresh = plain(source, 1, "float64").rows(1, 3)
    cache = Cache()
    for _ in range(2):
        for seed in (0, 1):
            X, y = cache.load(source, seed, "float64").rows(1, 3)
    assert len(made) == 2
    assert cache.load(source, 1, "float64").rows(1, 3)[0] is X
    np.testing.assert_array_equal(X, fresh[0])
    np.testing.assert_array_equal(y, fresh[1])
    cache.load(source, 1, "float32")
    assert len(made) == 3
    small = Cache(max_bytes=size_in_bytes(fresh) + 500)
    for seed in range(5):
        small.load(source, seed, "float64").rows(1, 3)
        assert sum(kept.bytes for kept in small.sets.values()) <= small.max_bytes
    many = small.load(LinregNoniid(clients=999, features=3, least=2, most=4), 1, "float64")
    assert many.bytes > small.max_bytes > size_in_bytes(many.rows(0, 1)), (
        "there is room for rows, but not for all sizes"
    )
    assert not many.pieces
    path = write(tmp_path / "x.npz", {"X": np.ones((3, 2)), "y": np.array(["b", "a", "c"])})
    source = Data.build({"name": "file", "path": str(path), "clients": 2}, "data")
    cached, plain = Cache().load(source, 0, "float64"), source.load(0, "float64")
    assert (cached.names, cached.notes) == (plain.names, plain.notes) == (("a", "b", "c"), plain.notes)
    assert np.array_equal(cached.values(), plain.values())
