"""Public images, in the files of MNIST and in folders: scaled, and dealt in shards of one label."""

import gzip
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.data.sources.public_images import read_idx
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.image_files import REAL, build, everything, idx


def write(folder, part, images, labels, pack=gzip.compress, suffix=".gz"):
    folder.mkdir(exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(images)))
    (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(labels)))


def write_set(folder, part, d, seed=0, **options):
    images, labels = np.random.default_rng(seed).integers(256, size=(d, 28, 28)), np.arange(d) % 10
    write(folder, part, images, labels, **options)
    return images.reshape(d, 784), labels


@pytest.mark.parametrize(("name", "mean", "deviation"), [("mnist", 0.1307, 0.3081), ("fmnist", 0.2860, 0.3530)])
@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, ".gz"), (bytes, "")])
def test_idx_images_are_scaled_and_dealt_in_label_pure_shards(root, name, mean, deviation, pack, suffix):
    images, labels = write_set(root / name, "t10k", 200, pack=pack, suffix=suffix)
    dataset = build(name, clients=8)
    assert (dataset.n, dataset.classes, dataset.sparse) == (784, 10, False)
    wanted = np.column_stack([labels, (images / 255 - mean) / deviation])
    assert np.array_equal(everything(dataset), wanted[np.lexsort(wanted.T)])
    same_rows_however_asked(dataset)
    same_tests_however_asked(dataset)
    assert max(len({*dataset.rows(i, i + 1)[1], *dataset.rows_test(i, i + 1)[1]}) for i in range(8)) <= 2
    assert np.all(np.abs(dataset.sizes_test - 0.2 * (dataset.sizes + dataset.sizes_test)) <= 0.5)
    single = Data.build({"name": name, "clients": 8}, "data").load(0, "float32").rows(2, 4)[0]
    assert single.dtype == np.float32
    assert np.array_equal(single, dataset.rows(2, 4)[0].astype(np.float32))
    dataset = build(name, clients=5, partition="iid", test=0.0)
    assert (list(dataset.sizes), dataset.sizes_test) == ([40] * 5, None)


def test_part_says_which_files_are_read(root):
    write_set(root / "mnist", "t10k", 40)
    assert len(everything(build("mnist", clients=5))) == 40
    write_set(root / "mnist", "train", 60, seed=1)
    for part, d in (("auto", 60), ("train", 60), ("test", 40), ("both", 100)):
        assert len(everything(build("mnist", clients=5, part=part))) == d
    (root / "mnist/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match=r"data = \"mnist\" finds no t10k-labels-idx1-ubyte\.gz or "):
        build("mnist", clients=5, part="both")
    (root / "mnist/t10k-labels.idx1-ubyte").write_bytes(idx(np.zeros(40)))  # so called by some servers
    assert len(everything(build("mnist", clients=5, part="both"))) == 100


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (np.zeros((3, 28, 28)), np.zeros(4), r"y of .* has 4 entries, but X has 3 rows"),
        (np.zeros((0, 28, 28)), np.zeros(0), r"X of .* has the shape \(0, 784\)"),
        (np.zeros((3, 0, 28)), np.zeros(3), r"X of .* has the shape \(3, 0\)"),
        (np.zeros((20, 8, 8)), np.zeros(20), "images of 64 pixels, .* of 784: they must come from the same data set"),
    ],
)
def test_images_and_labels_or_parts_that_do_not_go_together(root, images, labels, sentence):
    write_set(root / "mnist", "t10k", 20)
    write(root / "mnist", "train", images, labels, bytes, "")
    with pytest.raises(UserError, match=sentence):
        build("mnist", clients=1, part="both")


@pytest.mark.skipif(not Path(REAL, "mnist/t10k-images-idx3-ubyte.gz").is_file(), reason="MPIFED_DATA has no mnist")
def test_mnist_is_dealt_to_fifty_clients_who_keep_a_fifth_for_testing():
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    dataset = build("mnist", part="test")
    assert (dataset.m, dataset.sizes_test.sum()) == (50, pytest.approx(0.2 * sum(counts), rel=0.05))
    X = dataset.rows(0, dataset.m)[0]
    assert (X.mean(), X.std()) == pytest.approx((0, 1), abs=0.02)
    assert np.bincount(everything(dataset)[:, 0].astype(int)).tolist() == counts


def test_digits_come_with_scikit_learn(monkeypatch):
    dataset = build("digits")
    table = everything(dataset)
    assert (dataset.m, dataset.n, dataset.classes, len(table)) == (50, 64, 10, 1797)
    assert (table[:, 1:].min(), table[:, 1:].max()) == (0, 1)
    assert not (table[:, 1:] * 16 % 1).any()
    assert max(len(set(dataset.rows(i, i + 1)[1])) for i in range(50)) <= 2
    same_rows_however_asked(build("digits", clients=6))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(UserError, match=r"data = \"digits\" needs scikit-learn, .*: pip install \"mpifed\[data\]\""):
        build("digits")


BYTES = np.arange(24).reshape(2, 3, 4)
HOSTILE = {  # those in tests/hostile are refused in the same words
    "labels in the place of images": (idx(np.zeros(5)), r"begins with 00000801, not 00000803"),
    "another magic number": (b"\x00\x00\x0d\x03" + idx(BYTES)[4:], r"begins with 00000d03, not 00000803"),
    "nothing": (b"", r"begins with , not"),
    "more than it says": (idx(BYTES) + b"\0", r"declares 2 x 3 x 4 bytes, but holds more"),
    "a gigabyte declared": (idx(BYTES, (1024, 1024, 1024)), r"1024 x 1024 x 1024 bytes, but holds 24"),
    "terabytes declared": (idx(BYTES, (2**32 - 1, 2**32 - 1, 1)), r"more than 2 GiB is not supported"),
    "a product that overflows": (idx(BYTES, (2**31, 2**31, 4)), r"more than 2 GiB is not supported"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_idx_files_are_refused_without_a_large_allocation(tmp_path, case, packed):
    content, sentence = HOSTILE[case]
    path = tmp_path / "x-idx3-ubyte"
    path.write_bytes(gzip.compress(content) if packed else content)
    tracemalloc.start()
    with pytest.raises(UserError, match=sentence) as caught:
        read_idx(path, 3)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
    assert "\n" not in str(caught.value)


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


def test_without_class_folders_or_without_pillow_nothing_is_read(root, monkeypatch):
    (root / "medical-mnist").mkdir()
    source = Data.build({"name": "medical-mnist"}, "data")
    source.check()
    with pytest.raises(UserError, match=r"medical-mnist has no class folders .*: it should contain AbdomenCT"):
        source.load(0, "float64")
    monkeypatch.setattr("mpifed.data.sources.public_images.find_spec", lambda name: None)
    with pytest.raises(UserError, match='needs Pillow to read images: pip install "mpifed'):
        source.check()
