"""A run shows its progress as the caller wishes: a bar, a line, nothing."""

import io
import sys
from types import SimpleNamespace

import pytest

from mpifed.api import progress as module
from mpifed.api.progress import Bar, ProgressWithCallback, progress
from mpifed.core.errors import UserError
from mpifed.experiment.progress import Progress

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
