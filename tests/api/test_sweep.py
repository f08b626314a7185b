"""Many runs from a Python program: the grid of the command with values and objects, in memory or in a folder."""

import warnings

import numpy as np
import pytest

import mpifed
from mpifed.api.sweep import choose_layout
from mpifed.sweeps import grid
from tests.api.conftest import TABLE
from tests.api.test_run import descent
from tests.helpers.commands import execute, mpirun
from tests.helpers.commands import mpifed as command

PROGRAM = """
import mpifed

if __name__ == "__main__":
    found = mpifed.sweep({}, grid={{"algorithm.k0": [1, 2], "seed": range(2)}}, path="here")
    print([result.path for result in found])
"""


def test_results_are_those_of_the_command_in_the_order_of_the_grid(file, tmp_path):
    found = mpifed.sweep(file, {"algorithm.k0": [5, 1], "seed": range(2)}, path=tmp_path / "python", rounds=3)
    words = ["--grid", "algorithm.k0=5,1", "--grid", "seed=0:2", "-q", "-j", "1", "-o", tmp_path / "command"]
    assert command("sweep", file, "rounds=3", *words).code == 0
    assert [(run.config["algorithm"]["k0"], run.config["seed"]) for run in found] == [(5, 0), (5, 1), (1, 0), (1, 1)]
    for run in found:
        same = mpifed.load(run.path.replace("/python/", "/command/"))
        assert np.array_equal(run.x, same.x)
        assert run.config == same.config


def test_results_in_memory_can_be_saved_and_points_with_arrays_or_classes_of_this_program_stay_in_it(tmp_path):
    (found,) = mpifed.sweep(TABLE, {"seed": 3})
    assert found.path is None
    found.save(tmp_path / "out.h5")
    assert np.array_equal(mpifed.load(tmp_path / "out.h5").x, found.x)
    X = np.random.default_rng(0).standard_normal((20, 3))
    data = mpifed.arrays(X, X[:, 0], 4)
    assert len(mpifed.sweep({"rounds": 2}, {"seed": range(2)}, data=data, jobs=2)) == 2
    assert choose_layout(4, grid.points({}, (), ["seed=1,2"])).jobs == 4


def test_values_may_be_objects_and_keys_may_change_together():
    methods = [mpifed.algorithms.FedAvg(k0=3), "scaffold", descent()(gamma=0.2)]
    found = mpifed.sweep(TABLE, {"algorithm": methods, ("data.clients", "seed"): [(4, 1), (5, 2)]}, jobs=2)
    assert [run.config["algorithm"]["name"] for run in found[::2]] == ["fedavg", "scaffold", "__main__:Descent"]
    assert [(run.m, run.config["seed"]) for run in found[:2]] == [(4, 1), (5, 2)]


def test_a_point_that_fails_is_told_and_the_others_run():
    with pytest.warns(UserWarning, match=r"^t=1e-09\.h5  failed: f diverges"):
        found = mpifed.sweep(TABLE, {"algorithm.t": [1e-9, 0.2]}, algorithm="fedgia")
    assert [run.status for run in found] == ["failed", "finished"]


def test_finished_points_are_not_run_again(tmp_path):
    first = mpifed.sweep(TABLE, {"seed": range(2)}, path=tmp_path)
    with warnings.catch_warnings(action="error"):
        again = mpifed.sweep(TABLE, {"seed": range(2)}, path=tmp_path)
    assert [run.attrs["started"] for run in again] == [run.attrs["started"] for run in first]
    with pytest.raises(mpifed.UserError, match="is of another configuration: rounds is 4 there and 5 here"):
        mpifed.sweep(TABLE, {"seed": range(2)}, path=tmp_path, rounds=5)
    assert mpifed.sweep(TABLE, {"seed": range(2)}, path=tmp_path, rounds=5, force=True)[0].cr == 5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mpifed.sweep(TABLE), r"^a sweep needs a grid, for example"),
        (lambda: mpifed.sweep(TABLE, {"seed": []}), r"^grid\['seed'\] has no values$"),
        (lambda: mpifed.sweep(TABLE, {("seed", "rounds"): [(1, 2), (3,)]}), r"must be a tuple of 2$"),
        (lambda: mpifed.sweep(TABLE, {"algorithm.k00": [1]}), r"^point k00=1: unknown key 'algorithm\.k00'"),
        (lambda: mpifed.sweep(TABLE, {"seed": [1]}, jobs=0), r"^jobs = 0 is wrong"),
        (lambda: mpifed.sweep(TABLE, {"seed": [1, 2]}, data={"name": "file", "path": "no.npz"}), r"2 points lack"),
        (lambda: mpifed.sweep(TABLE, {"selection.count": [9, 8]}), r"selection\.count = \d is wrong"),
    ],
)
def test_a_mistake_is_answered_by_a_sentence(call, sentence):
    with pytest.raises(mpifed.UserError, match=sentence):
        call()


@pytest.mark.slow
def test_ranks_run_a_sweep_together_and_all_have_the_results(tmp_path):
    (tmp_path / "study.py").write_text(PROGRAM.format(TABLE))
    done = execute(mpirun(3, "study.py"), cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.count("here/k0=2,seed=1.h5") == 3  # of every rank
    assert mpifed.load(tmp_path / "here" / "k0=2,seed=1.h5").attrs["ranks"] == 3
