"""The progress of a run: silent, one line on a terminal, or a line now and then in a log."""

import io

import pytest

from mpifed.experiment import progress
from mpifed.experiment.progress import Progress

ROW = {"objective": 0.5, "grad_norm_sq": 1e-3}


@pytest.fixture
def always(monkeypatch):
    for name in ("SECONDS_TERMINAL", "SECONDS_LOG"):
        monkeypatch.setattr(progress, name, 0.0)


def test_a_log_has_a_line_a_round_and_a_terminal_one_line_that_is_cleared_at_the_end(always):
    log = io.StringIO()
    shown = Progress(log)
    shown.show(1, 4, ROW)
    shown.show(2, 4, {})  # a round without evaluation repeats the last values
    shown.close()
    lines = log.getvalue().splitlines()
    assert len(lines) == 2
    for k, line in enumerate(lines, 1):
        assert line.startswith(f"round {k} of at most 4  f 0.5  ‖∇f‖² 1.00e-03  at most ")

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    shown = Progress(terminal)
    shown.show(1, 4, ROW)
    shown.show(2, 4, ROW)
    shown.close()
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().count("\r") == 3
    assert terminal.getvalue().endswith("\r\033[K")


def test_the_time_left_of_a_resumed_run_counts_its_own_rounds(always, monkeypatch):
    clock = iter([100.0, 110.0, 120.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    shown = Progress(log)
    shown.show(51, 60, ROW)  # the first ten seconds had one round, the first twenty have two
    shown.show(52, 60, ROW)
    assert [line.rpartition("at most ")[2] for line in log.getvalue().splitlines()] == ["90 s left", "80 s left"]


def test_without_a_stream_nothing_is_written_and_otherwise_not_too_often(capsys):
    log = io.StringIO()
    for shown in (Progress(log), Progress(None)):
        for k in range(100):
            shown.show(k, 100, ROW)
        shown.close()
    shown.note("x")
    assert (log.getvalue(), capsys.readouterr()) == ("", ("", ""))
