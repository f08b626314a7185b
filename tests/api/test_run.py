"""Runs started, stopped and continued by a Python program, in one process and on several ranks."""

import numpy as np
import pytest

import mpifed
from mpifed.core import plugins
from tests.api.conftest import TABLE
from tests.contract import wrong
from tests.helpers.commands import execute, mpirun
from tests.helpers.commands import mpifed as command

LONGER = TABLE | {"rounds": 9}


def descent():
    """A method that only this program can name."""

    class Descent(wrong.Descent):
        pass

    return Descent


def test_a_run_is_that_of_the_command(file, tmp_path):
    result = mpifed.run(file, {"algorithm.k0": 3}, seed=2, path=tmp_path / "a.h5")
    command("run", file, "algorithm.k0=3", "seed=2", "-q", "-o", tmp_path / "b.h5")
    same = mpifed.load(tmp_path / "b.h5")
    assert np.array_equal(result.x, same.x)
    assert result.config == same.config == mpifed.load(tmp_path / "a.h5").config


def test_a_file_is_replaced_only_with_force(tmp_path):
    path = tmp_path / "out.h5"
    assert mpifed.run(TABLE, path=path).path == str(path)
    with pytest.raises(mpifed.UserError, match="exists"):
        mpifed.run(TABLE, path=path)
    assert mpifed.run(TABLE, rounds=2, path=path, force=True).cr == 2


def test_the_callback_hears_of_every_round_and_what_was_recorded():
    heard = []
    result = mpifed.run(TABLE, callback=lambda round, row: heard.append((round, row["objective"])) or "no")
    assert heard == list(enumerate(result.rounds["objective"].tolist()))
    assert result.status == "finished", "only True stops"


def test_the_callback_stops_the_run_and_resume_goes_on_with_the_same_bits(tmp_path):
    path = tmp_path / "out.h5"
    stopped = mpifed.run(LONGER, path=path, callback=lambda round, row: np.bool_(round == 3))
    assert (stopped.status, stopped.cr) == ("stopped", 3)
    assert stopped.stop_reason == "the callback returned True after round 3; resume goes on"
    whole = mpifed.run(LONGER)
    assert np.array_equal(mpifed.resume(path).x, whole.x)
    at_once = mpifed.run(LONGER, callback=lambda round, row: True)
    assert at_once.stop_reason == "the callback returned True after round 0"


def test_a_run_that_fails_or_whose_callback_fails_raises_and_leaves_its_rounds(tmp_path):
    with pytest.raises(mpifed.RunError, match=r"^f diverges: .* look at algorithm\.t; stop\.diverged = 0 goes on"):
        mpifed.run(TABLE, {"algorithm": {"name": "fedgia", "t": 1e-9}}, path=tmp_path / "out.h5")
    assert mpifed.load(tmp_path / "out.h5").status == "failed"

    def fails(round, row):
        raise ZeroDivisionError("in the notebook")

    with pytest.raises(ZeroDivisionError, match="in the notebook"):
        mpifed.run(TABLE, path=tmp_path / "other.h5", callback=fails)
    assert mpifed.load(tmp_path / "other.h5").status == "failed"


def test_a_class_of_a_notebook_is_recorded_as_such_and_asked_for_again(tmp_path):
    path, Descent = tmp_path / "out.h5", descent()
    mpifed.run(LONGER, {"algorithm": Descent(gamma=0.2)}, path=path, callback=lambda round, row: round == 2)
    assert mpifed.load(path).config["algorithm"] == {"name": "__main__:Descent", "certify": False, "gamma": 0.2}
    plugins.passed_classes.clear()
    done = command("resume", path)
    assert done.code == 2
    assert "Descent was defined in a notebook" in done.err
    assert "pass Descent(…) to mpifed.resume there" in done.err
    with pytest.raises(mpifed.UserError, match=r"^algorithm\.gamma = 0\.3 is wrong"):
        mpifed.resume(path, algorithm=Descent(gamma=0.3))
    whole = mpifed.run(LONGER, {"algorithm": Descent(gamma=0.2)})
    assert np.array_equal(mpifed.resume(path, algorithm=Descent(gamma=0.2)).x, whole.x)


def test_arrays_are_asked_for_again_and_checked(tmp_path):
    path, rng = tmp_path / "out.h5", np.random.default_rng(0)
    X, y, sizes = rng.standard_normal((30, 3)), rng.standard_normal(30), [5, 10, 15]
    mpifed.run(data=mpifed.arrays(X, y, sizes), rounds=6, path=path, callback=lambda round, row: round == 2)
    done = command("resume", path)
    assert done.code == 2
    assert "continue from Python with mpifed.resume(PATH, data=mpifed.arrays(X, y, clients))" in done.err
    with pytest.raises(mpifed.UserError, match=r"^data\.sha256 = .* is wrong"):
        mpifed.resume(path, data=mpifed.arrays(X + 1, y, sizes))
    whole = mpifed.run(data=mpifed.arrays(X, y, sizes), rounds=6)
    assert np.array_equal(mpifed.resume(path, data=mpifed.arrays(X, y, sizes)).x, whole.x)


PROGRAM = """
import mpifed
import numpy as np

rng = np.random.default_rng({seed})
data = mpifed.arrays(rng.standard_normal((30, 3)), rng.standard_normal(30), [5, 10, 15])
result = mpifed.run(data=data, algorithm="fedavg", rounds=6, path="out.h5", force=True, callback={callback})
print(repr(result))
"""


@pytest.mark.parametrize("callback", ["lambda round, row: round == 2", pytest.param("None", marks=pytest.mark.slow)])
def test_several_ranks_give_the_same_result_to_every_rank(tmp_path, monkeypatch, callback):
    (tmp_path / "study.py").write_text(PROGRAM.format(seed=0, callback=callback))
    done = execute(mpirun(3, "study.py"), cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.count("<Result of fedavg on least-squares / arrays, 3 clients: ") == 3
    several = mpifed.load(tmp_path / "out.h5")
    assert several.cr == (6 if callback == "None" else 2)
    monkeypatch.chdir(tmp_path)
    exec(PROGRAM.format(seed=0, callback=callback))
    assert np.array_equal(several.x, mpifed.load(tmp_path / "out.h5").x)


@pytest.mark.slow
def test_ranks_with_other_arrays_are_refused_and_an_error_in_the_callback_ends_all_with_one_message(tmp_path):
    for seed, callback, told in (
        ("MPI.COMM_WORLD.rank", "None", "the arrays of data differ between ranks: sha256 "),
        (0, "lambda round, row: 1 / 0", "failed: ZeroDivisionError: division by zero"),
    ):
        program = PROGRAM.format(seed=seed, callback=callback)
        (tmp_path / "study.py").write_text("from mpi4py import MPI\n" + program)
        done = execute(mpirun(3, "study.py"), cwd=tmp_path)
        assert done.code != 0
        assert told in done.err
        assert done.err.count("ZeroDivisionError: ") == (seed == 0)
