"""The data and networks of FedDCD's section 8.1."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import mpifed
from benchmarks.feddcd.variants import MnistHalves

PICTURES = {"train": 23, "t10k": 7}


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """The four files of MNIST with a few images of 2 x 2 pixels; returns part -> (images, labels)."""
    rng, folder, parts = np.random.default_rng(0), tmp_path / "mnist", {}
    folder.mkdir()
    for part, count in PICTURES.items():
        X, y = rng.integers(0, 256, (count, 2, 2), np.uint8), (np.arange(count) % 3).astype(np.uint8)
        for kind, array in (("images-idx3", X), ("labels-idx1", y)):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
        parts[part] = X.reshape(count, 4) / 255, y
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    return parts


@pytest.mark.parametrize("partition", ["contiguous", "classes"])
def test_clients_train_on_the_training_images_and_test_on_the_others(mnist, partition):
    data = MnistHalves(clients=4, partition=mpifed.Partition.build(partition, "partition")).load(0, "float64")
    X, y = data.rows(0, 4)
    assert sorted(map(tuple, X)) == sorted(map(tuple, mnist["train"][0]))
    assert np.array_equal(data.rows_test(0, 4)[0], mnist["t10k"][0])
    assert np.array_equal(data.rows_test(0, 4)[1], mnist["t10k"][1])
    assert data.sizes_test.tolist() == [1, 2, 2, 2]
    if partition == "contiguous":
        assert np.array_equal(X, mnist["train"][0])
        assert data.sizes.tolist() == [6, 6, 6, 5]
    else:
        ends = np.cumsum(data.sizes)[:-1]
        assert max(len(np.unique(own)) for own in np.split(y, ends)) <= 2


@pytest.mark.parametrize("name", ["FedDCD", "AccFedDCD"])
def test_the_variants_start_every_local_solve_at_the_servers_model(mnist, name):
    """With one gradient step from x: the w_i of all selected clients are x − (∇f_i(x) − y_i)/β, and β = 1."""
    table = {
        "data": {"name": "benchmarks.feddcd.variants:MnistHalves", "clients": 4, "partition": "contiguous"},
        "problem": {"name": "benchmarks.feddcd.variants:Network", "hidden": [3], "lam": 0.1},
        "algorithm": {"name": f"benchmarks.feddcd.variants:{name}", "solver": {"name": "gd", "steps": 1}},
        "selection": "all",
        "rounds": 1,
    }
    if name == "AccFedDCD":
        table["algorithm"]["kappa"] = 0.3
    first = mpifed.run(table)
    own = mpifed.run({**table, "algorithm": {**table["algorithm"], "name": name.lower()}})
    if name == "FedDCD":  # in round one the client's own model is the server's
        assert np.array_equal(first.x, own.x)
    else:  # the second exchange starts from the mean of the first
        assert not np.array_equal(first.x, own.x)
    assert list(first.rounds["exchanges"]) == [0, 2 if name == "FedDCD" else 4]
