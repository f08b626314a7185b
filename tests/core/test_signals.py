"""Signals that stop a run, and the numbers by which ranks exchange them."""

import sys

import pytest

from mpifed.core import signals
from tests.helpers.commands import execute

PROGRAM = """
import os, signal, sys, time
from mpifed.core import signals
signals.TOGETHER = 0.3
signals.listen()
for pause in map(float, sys.argv[1:]):
    time.sleep(pause)
    os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.2)
print(signals.stop_signal)
"""


def test_numbers_and_names_agree(monkeypatch):
    assert (signals.number(), signals.name(0)) == (0, "")
    for name in signals.HANDLED:
        monkeypatch.setattr(signals, "stop_signal", name)
        assert signals.name(signals.number()) == name


@pytest.mark.parametrize(
    ("pauses", "code", "said"), [(["0"], 0, "SIGUSR1\n"), (["0", "0.05"], 0, "SIGUSR1\n"), (["0", "0.6"], 128 + 10, "")]
)
def test_the_first_signal_is_noted_and_a_later_one_ends_the_process(pauses, code, said):
    done = execute([sys.executable, "-c", PROGRAM, *pauses], 20)
    assert (done.code, done.out) == (code, said), done.err
