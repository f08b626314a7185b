"""Folders of pictures are sets of classes."""

import sys

import numpy as np
import pytest
from PIL import Image

from mpifed.core.errors import UserError
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.image_files import build, everything


@pytest.fixture
def pictures(root):
    """medical-mnist with three classes of five 64 x 64 pictures each, and things that are no pictures."""
    folder = root / "medical-mnist"
    rng = np.random.default_rng(0)
    for number, name in enumerate(("AbdomenCT", "CXR", "Hand")):
        (folder / name).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(256, size=(64, 64, 3)).astype(np.uint8)
            pixels[0, 0] = number, 10 * i, 7  # red tells the class, green the picture
            Image.fromarray(pixels).save(folder / name / f"{i:03}.png")
    (folder / "empty").mkdir()
    (folder / "CXR/notes.txt").write_text("no picture")
    (folder / "readme.png").write_text("no folder")
    return folder


def test_a_folder_of_pictures_is_a_set_of_classes(pictures):
    dataset = build("medical-mnist", clients=4, partition="iid")
    assert (dataset.n, dataset.classes, dataset.m) == (12288, 3, 4)
    X, y = dataset.rows(0, 4)
    assert (dataset.sizes + dataset.sizes_test).sum() == 15
    assert (X.min(), X.max()) == (-1, 1)
    red, green, blue = (np.round((X[:, k * 4096] + 1) * 127.5) for k in range(3))  # channels one after the other
    assert np.array_equal(red, y)
    assert set(green) <= {0, 10, 20, 30, 40}
    assert set(blue) == {7}
    same_rows_however_asked(dataset)
    same_tests_however_asked(dataset)
    picture = np.asarray(Image.open(pictures / "Hand/003.png"))
    wanted = (np.moveaxis(picture, 2, 0).ravel() / 255 - 0.5) / 0.5
    assert any(np.array_equal(row, wanted) for row in everything(dataset)[:, 1:])
    dataset = build("medical-mnist", clients=3)
    assert max(len(set(dataset.rows(i, i + 1)[1])) for i in range(3)) <= 2


def test_grey_jpeg_and_other_sizes(pictures):
    Image.fromarray(np.full((32, 48), 200, np.uint8)).save(pictures / "Hand/grey.JPEG")
    palette = Image.fromarray(np.full((64, 64), 100, np.uint8)).convert("P")
    palette.save(pictures / "CXR/palette.png", transparency=b"\1\2")
    dataset = build("medical-mnist", clients=1, partition="iid", colour=False, size=16)
    table = everything(dataset)
    assert (dataset.n, len(table)) == (256, 17)
    flat = table[np.ptp(table[:, 1:], axis=1) < 0.05]
    assert np.allclose(np.sort(flat[:, 1]), (np.array([100, 200]) / 255 - 0.5) / 0.5, atol=0.02)


def test_a_rank_opens_the_pictures_of_its_own_clients_only(pictures, monkeypatch):
    opened, whole = [], Image.open
    monkeypatch.setattr(Image, "open", lambda path, **options: opened.append(path) or whole(path, **options))
    dataset = build("medical-mnist", clients=5, partition="iid")
    assert opened == []
    dataset.rows(1, 3)
    assert len(opened) == dataset.sizes[1:3].sum()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"data = \"medical-mnist\" needs Pillow .*: pip install \"mpifed\[data\]\""):
        dataset.rows(0, 1)


@pytest.mark.parametrize("content", [b"", b"no picture", "half", "GIF", "bomb"])
def test_what_is_no_picture_is_named(pictures, monkeypatch, content):
    path = pictures / "CXR/002.png"
    if content == "GIF":
        Image.new("L", (64, 64)).save(path, format="GIF")
    elif content == "bomb":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 64 * 64 - 1)
    else:
        path.write_bytes(path.read_bytes()[:6000] if content == "half" else content)
    with pytest.raises(UserError, match=r"\.png cannot be read as a JPEG or PNG image: ") as caught:
        everything(build("medical-mnist", clients=1, partition="iid"))
    assert "\n" not in str(caught.value)


def test_no_class_folders(root):
    (root / "medical-mnist").mkdir()
    with pytest.raises(UserError, match=r"medical-mnist has no class folders .*: it should contain AbdomenCT"):
        build("medical-mnist")
