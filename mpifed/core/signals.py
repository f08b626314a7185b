"""Signals that stop a run: after the first, the round is finished; a second one ends the process at once.

Python runs its own signal handlers only between bytecodes, so not while MPI waits. A thread therefore reads the
numbers that the handler in C writes to a pipe. Launchers and batch systems send a signal more than once: signals within
TOGETHER seconds of the first count as one.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANDLED = ("SIGTERM", "SIGUSR1", "SIGINT")
NUMBERS = tuple(getattr(signal, name) for name in HANDLED)
TOGETHER = 2.0  # seconds
NOTED = 1.0  # seconds in which a signal that was held back is noted

stop_signal = ""  # name of the first signal received; empty: none yet
before_exit: list[Callable[[], None]] = []  # what a second signal does before it ends the process


def number() -> int:
    """``stop_signal`` as the number that ranks exchange: 0, or 1 + its position in HANDLED."""
    return HANDLED.index(stop_signal) + 1 if stop_signal else 0


def name(number: int) -> str:
    """The signal that ``number()`` stands for; empty for 0."""
    return HANDLED[number - 1] if number else ""


def listen() -> None:
    """Handle the signals HANDLED from here on; before, each of them ends the process at once."""
    # Never blocking: the handler in C writes in the midst of anything, and a full pipe would stop the run for ever.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in NUMBERS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_read, args=(reading,), daemon=True).start()


@contextmanager
def blocked() -> Iterator[None]:
    """Hold the signals HANDLED back here and in processes that are started here, which ``unblock`` when they listen."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock() -> None:
    """Take the signals HANDLED that the process that started this one has held back, and all later ones."""
    held_back = signal.sigpending() & set(NUMBERS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
    deadline = time.monotonic() + NOTED
    while held_back and not stop_signal and time.monotonic() < deadline:
        time.sleep(0.001)  # the thread that listens notes it, before anything else begins


def _read(pipe: int) -> None:
    """Note the first signal; end the process at a later one that is no repetition of it."""
    global stop_signal
    numbers = dict(zip(NUMBERS, HANDLED, strict=True))
    first = 0.0
    while True:
        for number in os.read(pipe, 64):
            if number not in numbers:
                continue
            if not stop_signal:
                stop_signal, first = numbers[number], time.monotonic()
            elif time.monotonic() - first > TOGETHER:
                # Without the usual end of Python, in which MPI waits for ranks that do not know of the signal.
                for act in before_exit:
                    act()
                os._exit(128 + number)
