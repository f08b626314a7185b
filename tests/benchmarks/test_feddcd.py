"""FedDCD: its rates hold on a quadratic problem; the gap after round one, data and networks of section 8.1."""

import math

import numpy as np
import pytest

import mpifed
from benchmarks.feddcd import theory
from benchmarks.feddcd.theory import gap_after_round_1
from benchmarks.feddcd.theory import theory as constants
from benchmarks.feddcd.variants import MnistHalves
from tests.helpers.image_files import idx

QUADRATIC = {"data": {"name": "quadratic", "clients": 8, "features": 5}, "problem": "quadratic"}
PICTURES = {"train": 23, "t10k": 7}


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_gaps_are_positive_and_the_run_is_as_fast_as_guaranteed(name):
    study = {"rounds": 40, "algorithm": {"name": name, "dual": True}, "selection": {"name": "uniform", "count": 4}}
    result = mpifed.run(QUADRATIC | study)
    known = constants(result)
    assert (known.N, known.tau, known.accelerated) == (8, 4, name == "accfeddcd")
    for gap in (theory.gap, theory.dual_gap):
        assert (gap(result)[:5] > 0).all()
    assert max(theory.guaranteed(result), theory.corrected_bound(result)) <= 1


def test_the_gap_after_round_1_is_that_of_the_second_row():
    table = QUADRATIC | {"algorithm": "feddcd", "rounds": 3}
    result = mpifed.run(table | {"stop": {"optimum": -7.0, "objective_gap": 1e-9}})
    assert gap_after_round_1(result) == result.rounds["objective"][1] + 7.0
    assert math.isnan(gap_after_round_1(mpifed.run(table)))
    assert math.isnan(gap_after_round_1(mpifed.run(table | {"rounds": 0, "stop": {"optimum": -7.0}})))


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """The four files of MNIST with a few images of 2 x 2 pixels; returns part -> (images, labels)."""
    rng, folder, parts = np.random.default_rng(0), tmp_path / "mnist", {}
    folder.mkdir()
    for part, count in PICTURES.items():
        X, y = rng.integers(0, 256, (count, 2, 2), np.uint8), (np.arange(count) % 3).astype(np.uint8)
        for kind, array in (("images-idx3", X), ("labels-idx1", y)):
            (folder / f"{part}-{kind}-ubyte").write_bytes(idx(array))
        parts[part] = X.reshape(count, 4) / 255, y
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    return parts


@pytest.mark.parametrize("partition", ["contiguous", "classes"])
def test_clients_train_on_the_training_images_and_test_on_the_others(mnist, partition):
    data = MnistHalves(clients=4, partition=mpifed.extend.Partition.build(partition, "partition")).load(0, "float64")
    X, y = data.rows(0, 4)
    assert sorted(map(tuple, X)) == sorted(map(tuple, mnist["train"][0]))
    for found, expected in zip(data.rows_test(0, 4), mnist["t10k"], strict=True):
        assert np.array_equal(found, expected)
    assert data.sizes_test.tolist() == [1, 2, 2, 2]
    if partition == "contiguous":
        assert np.array_equal(X, mnist["train"][0])
        assert data.sizes.tolist() == [6, 6, 6, 5]
    else:
        own = np.split(y, np.cumsum(data.sizes)[:-1])
        assert max(len(np.unique(labels)) for labels in own) <= 2


@pytest.mark.parametrize("name", ["FedDCD", "AccFedDCD"])
def test_the_variants_start_every_local_solve_at_the_servers_model(mnist, name):
    """With one gradient step from x: the w_i of all selected clients are x − (∇f_i(x) − y_i)/β, and β = 1."""
    options = {"solver": {"name": "gd", "steps": 1}} | ({"kappa": 0.3} if name == "AccFedDCD" else {})
    table = {
        "data": {"name": "benchmarks.feddcd.variants:MnistHalves", "clients": 4, "partition": "contiguous"},
        "problem": {"name": "benchmarks.feddcd.variants:Network", "hidden": [3], "lam": 0.1},
        "selection": "all",
        "rounds": 1,
    }
    names = (f"benchmarks.feddcd.variants:{name}", name.lower())
    first, own = (mpifed.run(table | {"algorithm": {"name": one} | options}) for one in names)
    # in round one the client's own model is the server's; AccFedDCD's second exchange starts from the mean of the first
    assert np.array_equal(first.x, own.x) == (name == "FedDCD")
    assert list(first.rounds["exchanges"]) == [0, 2 if name == "FedDCD" else 4]
