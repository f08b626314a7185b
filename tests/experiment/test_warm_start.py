"""A run that starts from the model of another run, or from one in an NPZ file."""

import re
import shutil

import h5py
import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.experiment.config import Job, experiment, read_experiment
from mpifed.experiment.run import start
from mpifed.results.result import load
from tests.experiment.conftest import chosen, run
from tests.helpers.algorithm_cases import GRAPHED, PROBLEMS, SETTINGS

STUDY = {"data": {"clients": 6, "features": 5}, "rounds": 4, "stop": {"gradient": 0.0}}
X = np.array([0.5, -1.0, 2.0, 0.25, 3.0])


def result(table, path=None):
    return start(Job(experiment(table), path)).result()


def sentence(path, **more):
    with pytest.raises(UserError) as caught:
        result(STUDY | more | {"start": str(path)})
    return str(caught.value)


@pytest.mark.parametrize("name", chosen(Algorithm.choices, "fedgia", "fedepm", "flame", "fednl", "accfeddcd", "dgd"))
def test_every_method_starts_where_the_other_run_ended(name, tmp_path):
    table = {
        "data": {"name": "quadratic", "clients": 6, "features": 5} if name in PROBLEMS else STUDY["data"],
        "algorithm": {"name": name, **SETTINGS.get(name, {})},
        "rounds": 3,
        **({"graph": "ring"} if name in GRAPHED else {}),
    }
    first = result(table, tmp_path / "out.h5")
    again = result(table | {"start": str(tmp_path / "out.h5")})
    if name.startswith("fedepm"):  # its server starts from a proximal step on the first uploads
        np.testing.assert_allclose(again.rounds["objective"][0], first.rounds["objective"][-1], rtol=1e-3)
    else:
        assert again.rounds["objective"][0] == first.rounds["objective"][-1]
        assert again.rounds["grad_norm_sq"][0] == first.rounds["grad_norm_sq"][-1]
    assert again.config["start"] == str(tmp_path / "out.h5")
    assert first.config.get("start") is None


def test_a_start_is_the_model_before_the_first_round(tmp_path):
    """Also of a network."""
    np.savez(tmp_path / "x.npz", x=X)
    for dtype in ("float64", "float32"):
        given = result(STUDY | {"rounds": 0, "dtype": dtype, "start": str(tmp_path / "x.npz")})
        assert given.x.tobytes() == X.astype(dtype).tobytes()
    data = {"name": "synthetic", "clients": 4, "least": 6, "most": 9}
    table = {"data": data, "problem": {"name": "mlp", "hidden": [3]}, "algorithm": "fedavg", "rounds": 2}
    first = result(table, tmp_path / "out.h5")
    again = result(table | {"rounds": 0, "start": str(tmp_path / "out.h5")})
    assert again.x.tobytes() == first.x.tobytes()


def test_its_path_is_relative_to_the_experiment_file(tmp_path, monkeypatch):
    deep = tmp_path / "deep"
    deep.mkdir()
    np.savez(deep / "x.npz", x=X)
    (deep / "study.toml").write_text('start = "x.npz"\nrounds = 0\ndata = {clients = 6, features = 5}\n', "utf-8")
    assert read_experiment(deep / "study.toml")["start"] == str(deep / "x.npz")
    shutil.copy(tmp_path / "deep" / "x.npz", tmp_path / "other.npz")
    run("run", "deep/study.toml", "start=other.npz", "-q", "-o", "other.h5", cwd=tmp_path)
    assert load(tmp_path / "other.h5").config["start"] == "other.npz"
    assert load(tmp_path / "other.h5").x.tobytes() == X.tobytes()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X[:3]}, "its model has 3 parameters, but the model of this problem on these data has 5"),
        ({"x": X[None]}, r"its x has shape \(1, 5\), a model for each node, and without a table \[graph\] all clients"),
        ({"x": X[None, None]}, r"x must be a vector of real numbers, or on a graph .* and shape \(1, 1, 5\)"),
        ({"x": np.array([None] * 5)}, "x must be a vector of real numbers, or on a graph .*, and it has type object"),
        ({"x": np.where(X > 1, np.nan, X)}, "2 of its 5 numbers are not finite"),
        ({"w": X, "b": X}, "it has no array x, but w, b"),
    ],
    ids=["size", "table", "cube", "objects", "not finite", "other names"],
)
def test_what_is_no_model_of_the_problem_is_refused(arrays, words, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    assert re.fullmatch(f'start = "{path}" is wrong: {words}.*', sentence(path))


# fedepm-graph starts from a proximal step on the first uploads
@pytest.mark.parametrize("name", chosen([name for name in GRAPHED if name != "fedepm-graph"], "dgd", "choco", "motef"))
def test_nodes_of_a_graph_start_from_rows_of_their_own(name, tmp_path):
    X = np.random.default_rng(0).standard_normal((6, 5))
    np.savez(tmp_path / "own.npz", x=X)
    np.savez(tmp_path / "mean.npz", x=X.mean(axis=0))
    table = STUDY | {"algorithm": {"name": name, **SETTINGS.get(name, {})}, "graph": "ring", "rounds": 0}
    own, mean = (result(table | {"start": str(tmp_path / f"{which}.npz")}) for which in ("own", "mean"))
    np.testing.assert_allclose(own.x, X.mean(axis=0), rtol=1e-14)
    assert own.rounds["consensus"][0] == pytest.approx(np.sum((X - X.mean(axis=0)) ** 2) / 6)
    assert mean.rounds["consensus"][0] < 1e-25


def test_a_table_of_another_number_of_nodes_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((4, 5)))
    assert sentence(tmp_path / "x.npz", algorithm="dgd", graph="ring").endswith("has 4 rows, but the graph has 6 nodes")


def test_a_result_without_a_model_and_other_files_are_refused(tmp_path):
    result(STUDY, tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        del file["model/x"]
        file.attrs["status"] = "running"
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = X
    (tmp_path / "x.txt").write_text("0.5 1.0", "utf-8")
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    np.savez(tmp_path / "large.npz", x=1e300 * X)
    for name, said in {
        "out.h5": "has no final model, for its status is running: it must be finished or stopped",
        "other.h5": "is an HDF5 file but not a result of mpifed",
        "x.txt": "is not a result file: it is not HDF5",
        "damaged.npz": "is not a result file: it is not HDF5",
        "": "there is no such file",
        "large.npz": "numbers of its model are too large for float32",
    }.items():
        assert said in sentence(tmp_path / name, dtype="float32")
