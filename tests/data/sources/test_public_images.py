"""Images: IDX files and folders of pictures are read as they are, hostile ones are refused, shards have one label."""

from __future__ import annotations

import gzip
import os
import struct
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.formats.idx import read_idx
from tests.data.sources.test_file import same_rows_however_asked
from tests.data.test_split import same_tests_however_asked

REAL = os.environ.get("MPIFED_DATA", "")


def idx(values, lengths=None):
    """An IDX file of unsigned bytes, whose head may lie about the lengths."""
    lengths = values.shape if lengths is None else lengths
    return (
        bytes([0, 0, 8, len(lengths)]) + struct.pack(f">{len(lengths)}I", *lengths) + values.astype(np.uint8).tobytes()
    )


def write_set(folder, part, d, seed=0, pack=gzip.compress, suffix=".gz"):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    images, labels = rng.integers(256, size=(d, 28, 28)), np.arange(d) % 10
    (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(images)))
    (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(labels)))
    return images.reshape(d, 784), labels


def build(name, **options):
    return Data.build({"name": name, **options}, "data").load(0, "float64")


def everything(dataset):
    """All samples, training and test, in a canonical order."""
    (X, y), (X_test, y_test) = dataset.rows(0, dataset.m), dataset.rows_test(0, dataset.m)
    table = np.column_stack([np.concatenate([y, y_test]), np.concatenate([X, X_test])])
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize(("name", "mean", "deviation"), [("mnist", 0.1307, 0.3081), ("fmnist", 0.2860, 0.3530)])
@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, ".gz"), (bytes, "")])
def test_idx_images_are_scaled_and_dealt_in_label_pure_shards(
    tmp_path, monkeypatch, name, mean, deviation, pack, suffix
):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    images, labels = write_set(tmp_path / name, "t10k", 200, pack=pack, suffix=suffix)
    dataset = build(name, clients=8)
    assert (dataset.n, dataset.classes, dataset.sparse) == (784, 10, False)
    wanted = np.column_stack([labels, (images / 255 - mean) / deviation])
    assert np.array_equal(everything(dataset), wanted[np.lexsort(wanted.T)])
    same_rows_however_asked(dataset)
    same_tests_however_asked(dataset)
    for i in range(8):
        own = {*dataset.rows(i, i + 1)[1], *dataset.rows_test(i, i + 1)[1]}
        assert len(own) <= 2
    d = dataset.sizes + dataset.sizes_test
    assert np.all(np.abs(dataset.sizes_test - 0.2 * d) <= 0.5)
    single = Data.build({"name": name, "clients": 8}, "data").load(0, "float32").rows(2, 4)[0]
    assert single.dtype == np.float32
    assert np.array_equal(single, dataset.rows(2, 4)[0].astype(np.float32))


def test_part_says_which_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    write_set(tmp_path / "mnist", "t10k", 40)
    assert len(everything(build("mnist", clients=5))) == 40
    write_set(tmp_path / "mnist", "train", 60, seed=1)
    for part, d in (("auto", 60), ("train", 60), ("test", 40), ("both", 100)):
        assert len(everything(build("mnist", clients=5, part=part))) == d
    (tmp_path / "mnist/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match=r"data = \"mnist\" finds no t10k-labels-idx1-ubyte\.gz or "):
        build("mnist", clients=5, part="both")
    (tmp_path / "mnist/t10k-labels.idx1-ubyte").write_bytes(idx(np.zeros(40)))  # so called by some servers
    assert len(everything(build("mnist", clients=5, part="both"))) == 100


def test_another_partition_and_no_test_samples(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    write_set(tmp_path / "mnist", "t10k", 50)
    dataset = build("mnist", clients=5, partition="iid", test=0.0)
    assert list(dataset.sizes) == [10] * 5
    assert dataset.sizes_test is None


BYTES = np.arange(24).reshape(2, 3, 4)
HOSTILE = {
    "another magic number": (b"\x00\x00\x0d\x03" + idx(BYTES)[4:], r"begins with 00000d03, not 00000803"),
    "labels in the place of images": (idx(np.zeros(5)), r"begins with 00000801"),
    "nothing": (b"", r"begins with , not"),
    "an end inside the head": (idx(BYTES)[:9], r"ends in its header"),
    "an end inside the values": (idx(BYTES)[:-1], r"declares 2 x 3 x 4 bytes, but holds 23"),
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


def test_a_packed_idx_file_cut_short_is_named(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx(np.random.default_rng(0).integers(256, size=(9, 28, 28))))[:-200])
    with pytest.raises(UserError, match=r"x\.gz cannot be read as IDX"):
        read_idx(path, 3)


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (np.zeros((3, 28, 28)), np.zeros(4), r"y of .* has 4 entries, but X has 3 rows"),
        (np.zeros((0, 28, 28)), np.zeros(0), r"X of .* has the shape \(0, 784\)"),
        (np.zeros((3, 0, 28)), np.zeros(3), r"X of .* has the shape \(3, 0\)"),
    ],
)
def test_images_and_labels_that_do_not_go_together(tmp_path, monkeypatch, images, labels, sentence):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/t10k-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "mnist/t10k-labels-idx1-ubyte").write_bytes(idx(labels))
    with pytest.raises(UserError, match=sentence):
        build("mnist", clients=1)


def test_train_and_test_images_of_two_sets_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    write_set(tmp_path / "mnist", "t10k", 20)
    for part, values in (("images-idx3", np.zeros((20, 8, 8))), ("labels-idx1", np.zeros(20))):
        (tmp_path / f"mnist/train-{part}-ubyte").write_bytes(idx(values))
    with pytest.raises(UserError, match=r"images of 64 pixels, .* of 784: they must come from the same data set"):
        build("mnist", clients=2, part="both")


@pytest.fixture(params=["made", "real"])
def images_of_digits(request, tmp_path, monkeypatch):
    """How many images of each digit there are, and the mean and deviation of the scaled pixels."""
    if request.param == "real":
        if not Path(REAL, "mnist/t10k-images-idx3-ubyte.gz").is_file():
            pytest.skip("MPIFED_DATA has no mnist/t10k-*.gz")
        return [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], 0.0, 1.0
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    images, labels = write_set(tmp_path / "mnist", "t10k", 500)
    return np.bincount(labels).tolist(), (images.mean() / 255 - 0.1307) / 0.3081, images.std() / 255 / 0.3081


def test_mnist_is_dealt_to_fifty_clients_who_keep_a_fifth_for_testing(images_of_digits):
    counts, mean, deviation = images_of_digits
    dataset = build("mnist", part="test")
    assert dataset.m == 50
    assert dataset.sizes.sum() + dataset.sizes_test.sum() == sum(counts)
    assert dataset.sizes_test.sum() == pytest.approx(0.2 * sum(counts), rel=0.05)
    X, y = dataset.rows(0, dataset.m)
    assert abs(X.mean() - mean) < 0.02
    assert abs(X.std() - deviation) < 0.02
    assert np.bincount(np.concatenate([y, dataset.rows_test(0, 50)[1]]).astype(int)).tolist() == counts


# ---- digits


def test_digits_come_with_scikit_learn():
    dataset = build("digits")
    assert (dataset.m, dataset.n, dataset.classes) == (50, 64, 10)
    table = everything(dataset)
    assert len(table) == 1797
    assert (table[:, 1:].min(), table[:, 1:].max()) == (0, 1)
    assert np.array_equal(table[:, 1:] * 16, np.round(table[:, 1:] * 16))
    for i in range(50):
        assert len(set(dataset.rows(i, i + 1)[1])) <= 2
    same_rows_however_asked(build("digits", clients=6))


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(UserError, match=r"data = \"digits\" needs scikit-learn, .*: pip install mpifed\[data\]"):
        build("digits")


# ---- folders of pictures


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
    with pytest.raises(UserError, match=r"data = \"medical-mnist\" needs Pillow .*: pip install mpifed\[data\]"):
        dataset.rows(0, 1)
