"""Folders of pictures are sets of classes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

from mpifed.core.errors import UserError
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.image_files import build, everything


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """medical-mnist with three classes of five 64 x 64 pictures each, and things that are no pictures."""
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    root = tmp_path / "medical-mnist"
    rng = np.random.default_rng(0)
    for number, name in enumerate(("AbdomenCT", "CXR", "Hand")):
        (root / name).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(256, size=(64, 64, 3)).astype(np.uint8)
            pixels[0, 0] = number, 10 * i, 7  # red tells the class, green the picture
            Image.fromarray(pixels).save(root / name / f"{i:03}.png")
    (root / "empty").mkdir()
    (root / "CXR/notes.txt").write_text("no picture")
    (root / "readme.png").write_text("no folder")
    return root


def test_a_folder_of_pictures_is_a_set_of_classes(pictures):
    dataset = build("medical-mnist", clients=4, partition="iid")
    assert (dataset.n, dataset.classes, dataset.m) == (12288, 3, 4)
    X, y = dataset.rows(0, 4)
    assert (dataset.sizes + dataset.sizes_test).sum() == 15
    assert X.min() == -1
    assert X.max() == 1
    assert np.array_equal(np.round((X[:, 0] + 1) * 127.5), y)  # channels one after the other:
    assert np.all(np.round((X[:, 2 * 4096] + 1) * 127.5) == 7)  # red, green, blue
    assert set(np.round((X[:, 4096] + 1) * 127.5)) <= {0, 10, 20, 30, 40}
    same_rows_however_asked(dataset)
    same_tests_however_asked(dataset)
    picture = np.asarray(Image.open(pictures / "Hand/003.png"))
    wanted = (np.moveaxis(picture, 2, 0).ravel() / 255 - 0.5) / 0.5
    assert any(np.array_equal(row, wanted) for row in everything(dataset)[:, 1:])


def test_a_client_has_pictures_of_two_classes(pictures):
    dataset = build("medical-mnist", clients=3)
    for i in range(3):
        assert len(set(dataset.rows(i, i + 1)[1])) <= 2


def test_grey_jpeg_and_other_sizes(pictures):
    Image.fromarray(np.full((32, 48), 200, np.uint8)).save(pictures / "Hand/grey.JPEG")
    Image.fromarray(np.full((64, 64), 100, np.uint8)).convert("P").save(
        pictures / "CXR/palette.png", transparency=b"\1\2"
    )
    dataset = build("medical-mnist", clients=1, partition="iid", colour=False, size=16)
    assert dataset.n == 256
    table = everything(dataset)
    assert len(table) == 17
    flat = table[np.ptp(table[:, 1:], axis=1) < 0.05]
    assert np.allclose(np.sort(flat[:, 1]), (np.array([100, 200]) / 255 - 0.5) / 0.5, atol=0.02)


def test_a_rank_opens_the_pictures_of_its_own_clients_only(pictures, monkeypatch):
    opened, whole = [], Image.open
    monkeypatch.setattr(Image, "open", lambda path, **options: opened.append(path) or whole(path, **options))
    dataset = build("medical-mnist", clients=5, partition="iid")
    assert opened == []
    dataset.rows(1, 3)
    assert len(opened) == dataset.sizes[1:3].sum()


@pytest.mark.parametrize("content", [b"", b"no picture", "half", "GIF", "bomb"])
def test_what_is_no_picture_is_named(pictures, monkeypatch, content):
    path = pictures / "CXR/002.png"
    if content == "half":
        content = path.read_bytes()[:6000]
    elif content == "GIF":
        Image.new("L", (64, 64)).save(path, format="GIF")
        content = path.read_bytes()
    elif content == "bomb":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 64 * 64 - 1)
        content = path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"\.png cannot be read as a JPEG or PNG image: ") as caught:
        everything(build("medical-mnist", clients=1, partition="iid"))
    assert "\n" not in str(caught.value)


def test_no_class_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    (tmp_path / "medical-mnist").mkdir()
    with pytest.raises(UserError, match=r"medical-mnist has no class folders .*: it should contain AbdomenCT"):
        build("medical-mnist")


def test_pictures_without_pillow_say_what_to_install(pictures, monkeypatch):
    dataset = build("medical-mnist", clients=1, partition="iid")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"data = \"medical-mnist\" needs Pillow .*: pip install \"mpifed\[data\]\""):
        dataset.rows(0, 1)
