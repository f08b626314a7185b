"""Runs started, stopped, continued and watched by a Python program, in one process and on several ranks."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mpifed
from mpifed.api import progress as module
from mpifed.api.progress import Bar, ProgressWithCallback, progress
from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.experiment.progress import Progress
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
    assert np.array_equal(mpifed.resume(path).x, mpifed.run(LONGER).x)
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


@pytest.mark.slow
@pytest.mark.parametrize("callback", ["lambda round, row: round == 2", "None"])
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


ROW = {"objective": 0.5, "grad_norm_sq": 1e-3}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as stderr of the module alone: pytest sets sys.stderr itself."""
    stream = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    return stream


def test_false_and_none_are_silent_and_the_line_is_that_of_the_command(terminal):
    for wish in (False, None):
        assert progress(wish).stream is None
    for wish in (True, "line"):
        assert type(progress(wish)) is Progress
        assert progress(wish).stream is terminal


def test_auto_is_a_bar_where_somebody_looks_and_tqdm_is_installed_else_the_line(monkeypatch, terminal):
    with monkeypatch.context() as other:
        other.setattr(module, "tqdm", lambda: None)
        assert type(progress("auto")) is Progress
    with monkeypatch.context() as other:
        other.setattr(module, "sys", SimpleNamespace(stderr=io.StringIO(), modules={}))
        assert type(progress("auto")) is Progress
    pytest.importorskip("tqdm", reason="tqdm comes with the extra notebook")
    monkeypatch.setattr(module, "DELAY", 0)
    shown = progress("auto")
    assert isinstance(shown, Bar)
    shown.show(0, 8, ROW)
    shown.show(1, 8, {})
    shown.bar.refresh()
    assert "1/8" in terminal.getvalue()
    assert "f 0.5, ‖∇f‖² 1.00e-03" in terminal.getvalue()
    shown.note("a note")
    shown.close()
    assert "mpifed: a note\n" in terminal.getvalue()


def test_a_callback_that_returns_true_asks_to_stop(terminal):
    heard = []
    shown = progress(False, lambda round, row: heard.append(row) or round == 2)
    assert isinstance(shown, ProgressWithCallback)
    shown.show(1, 8, ROW)
    assert (shown.stop, heard) == ("", [ROW])
    shown.show(2, 8, ROW)
    assert shown.stop == "the callback returned True"


def test_other_wishes_are_refused():
    with pytest.raises(UserError, match=r"^progress = 'bar' is wrong: it must be \"auto\", \"line\", True or False$"):
        progress("bar")
    with pytest.raises(UserError, match=r"^callback = 3 is wrong: it must be a function of a round and its row$"):
        progress(False, 3)
