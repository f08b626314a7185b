"""Data files are looked for before anything is read."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.download import MANUAL, SOURCES
from tests.helpers.data_files import DENSE, write

GENERATED = ["linreg-noniid", "synthetic", "gaussian", "images", "quadratic", "lower-bound", "digits"]
PUBLIC = [*SOURCES, *MANUAL]


def test_every_source_is_generated_public_or_a_file():
    assert sorted([*GENERATED, *PUBLIC, "file", "arrays"]) == sorted(Data.choices)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_data_are_always_there(name, monkeypatch):
    monkeypatch.delenv("MPIFED_DATA", raising=False)
    source = Data.build({"name": name}, "data")
    monkeypatch.setattr(type(source), "load", None)
    assert source.check() is None
    assert source.locate() == []


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("root", [None, "empty"])
def test_absent_files_are_told_as_loading_would_tell_them(name, root, tmp_path, monkeypatch):
    if root is None:
        monkeypatch.delenv("MPIFED_DATA", raising=False)
    else:
        monkeypatch.setenv("MPIFED_DATA", str(tmp_path / root))
    source = Data.build({"name": name}, "data")
    advice = "download" if name in MANUAL else f"python -m mpifed data get {name} --to DIR"
    with pytest.raises(UserError, match=advice) as caught:
        source.check()
    with pytest.raises(UserError) as loading:
        source.load(0, "float64")
    assert str(caught.value) == str(loading.value)


def test_the_second_file_of_a_pair_is_looked_for_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    for name, there, absent in (
        ("qot", "toxicity.mat", "toxicityclass.mat"),
        ("adult", "adult.data", "adult.test"),
        ("mnist", "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / there).touch()
        source = Data.build({"name": name}, "data")
        with pytest.raises(UserError, match=f'data = "{name}" finds no .*{absent}'):
            source.check()
        (tmp_path / name / absent).touch()
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


def test_images_need_pillow_before_the_first_one_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    (tmp_path / "medical-mnist").mkdir()
    source = Data.build({"name": "medical-mnist"}, "data")
    source.check()
    monkeypatch.setattr("mpifed.data.sources.public_images.find_spec", lambda name: None)
    with pytest.raises(UserError, match='needs Pillow to read images: pip install "mpifed'):
        source.check()
