"""Public images: scaled, and dealt in shards of one label."""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.image_files import build, everything, idx

REAL = os.environ.get("MPIFED_DATA", "")


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
    assert (dataset.m, dataset.sizes.sum() + dataset.sizes_test.sum()) == (50, sum(counts))
    assert dataset.sizes_test.sum() == pytest.approx(0.2 * sum(counts), rel=0.05)
    X, y = dataset.rows(0, dataset.m)
    assert (X.mean(), X.std()) == pytest.approx((mean, deviation), abs=0.02)
    assert np.bincount(np.concatenate([y, dataset.rows_test(0, 50)[1]]).astype(int)).tolist() == counts


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
