"""Signals that ask a run to end: the first lets the round be finished, a second one ends the process at once.

They are noticed at once, also inside MPI, by a thread that reads what the handlers in C write. Launchers and batch systems
repeat themselves: signals within TOGETHER seconds of the first are the same request.
"""

from __future__ import annotations

import os
import signal
import threading
import time

WANTED = ("SIGTERM", "SIGUSR1", "SIGINT")
TOGETHER = 2.0

asked = ""  # the name of the first signal


def number() -> int:
    """What a rank tells the others of ``asked``: 0, or which of WANTED it is."""
    return WANTED.index(asked) + 1 if asked else 0


def name(number: int) -> str:
    """The signal of that number; empty for 0."""
    return WANTED[number - 1] if number else ""


def listen() -> None:
    """From here on the signals WANTED are requests to end; before, they kill."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for name in WANTED:
        signal.signal(getattr(signal, name), lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_read, args=(reading,), daemon=True).start()


def _read(pipe: int) -> None:
    global asked
    numbers = {int(getattr(signal, name)): name for name in WANTED}
    first = 0.0
    while True:
        for number in os.read(pipe, 64):
            if number not in numbers:
                continue
            if not asked:
                asked, first = numbers[number], time.monotonic()
            elif time.monotonic() - first > TOGETHER:
                os._exit(128 + number)
