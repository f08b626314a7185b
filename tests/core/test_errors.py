"""Messages of errors, signals that stop a run, and output whose encoding lacks the marks of mathematics."""

import errno
import io
import os
import sys
import unicodedata
from pathlib import Path

import pytest

import mpifed
from mpifed import __main__ as output
from mpifed.core import signals
from mpifed.core.errors import LONGEST, UserError, escape_unprintable, failure_message, reason, to_one_line
from tests.helpers.commands import execute


def test_a_sentence_is_one_line_of_bounded_length():
    assert to_one_line("one\ntwo\x1b[2J") == "one\\ntwo\\x1b[2J"
    assert to_one_line("a" * 10 * LONGEST + "b" * 10 * LONGEST) == "a" * (LONGEST // 2) + " … " + "b" * (LONGEST // 2)
    assert escape_unprintable("ü\t\n", keep="\n") == "ü\\t\n"


def test_the_reason_of_an_error_of_the_system_is_that_of_the_system_and_a_failure_says_where_it_happened():
    assert reason(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x.h5")) == "no such file or directory"
    assert reason(ValueError("Bad Value")) == "bad value"
    text = failure_message(1, MemoryError("Unable to allocate 3 GiB"))
    assert text.endswith("has no memory left: unable to allocate 3 gib")
    assert text.startswith("rank 1 on ")
    assert failure_message(2, UserError("k0 = 0 is wrong")) == "k0 = 0 is wrong"
    try:
        _ = 1 // 0
    except ZeroDivisionError as error:
        text = failure_message(2, error)
    assert text.startswith("rank 2 on ")
    assert "failed: ZeroDivisionError: " in text.splitlines()[0]
    assert "test_errors.py" in text


PROGRAM = """
import os, signal, sys, time
from mpifed.core import signals
signals.REPEAT_SECONDS = 0.3
signals.listen_for_signals()
for pause in map(float, sys.argv[1:]):
    time.sleep(pause)
    os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.2)
print(signals.stop_signal)
"""


def test_numbers_and_names_of_signals_agree(monkeypatch):
    assert (signals.signal_number(), signals.signal_name(0)) == (0, "")
    for name in signals.HANDLED:
        monkeypatch.setattr(signals, "stop_signal", name)
        assert signals.signal_name(signals.signal_number()) == name


@pytest.mark.parametrize(
    ("pauses", "code", "said"), [(["0"], 0, "SIGUSR1\n"), (["0", "0.05"], 0, "SIGUSR1\n"), (["0", "0.6"], 128 + 10, "")]
)
def test_the_first_signal_is_noted_and_a_later_one_ends_the_process(pauses, code, said):
    done = execute([sys.executable, "-c", PROGRAM, *pauses], 20)
    assert (done.code, done.out) == (code, said), done.err


PACKAGE = Path(mpifed.__file__).parent


def written(text, encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=output.ERRORS)
    stream.write(text)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "wanted"),
    [
        ("‖∇f‖² 1.5 → 2e−3", "ascii", "||grad f||^2 1.5 -> 2e-3"),
        ("‖∇f‖² 1.5 → 2e−3", "latin-1", "||grad f||² 1.5 -> 2e-3"),
        ("10⁻¹², x₁₀, (λ/2)‖x̄ − ŵ‖", "ascii", "10^-12, x_10, (lambda/2)||x - w||"),
        ("γ ≤ Γ, ½", "ascii", "gamma <= Gamma, 1/2"),
        ("Zoë, 東", "ascii", "Zoe, \\u6771"),
    ],
)
def test_what_is_written(text, encoding, wanted):
    assert written(text, encoding) == wanted


def test_every_mark_of_the_package_has_some_ascii():
    found = {c for path in PACKAGE.rglob("*.py") for c in path.read_text("utf-8") if not c.isascii()}
    assert len(found) > 50
    for c in found:
        text = written(c, "ascii")
        assert text.isascii()
        assert "\\" not in text, c
        assert text or unicodedata.combining(c), c


ASCII = pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow)


@pytest.mark.parametrize("variables", [{"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ASCII])
def test_a_run_under_a_locale_without_utf_8_ends_with_its_summary(variables, tmp_path):
    words = ["run", "data.clients=4", "data.features=3", "rounds=1", "kernels=numpy", "-o", tmp_path / "out.h5"]
    binary = {name: value for name, value in os.environ.items() if name != "LANG"} | {"LC_ALL": "C"}
    done = execute([sys.executable, "-m", "mpifed", *words], **binary | variables)
    assert (done.code, done.err) == (0, "")
    assert "||grad f||" in done.out
    assert done.out.endswith("written to {}\n".format(tmp_path / "out.h5"))
