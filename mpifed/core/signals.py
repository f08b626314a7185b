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
REPEAT_SECONDS = 2.0  # seconds
NOTE_SECONDS = 1.0  # seconds in which a signal that was held back is noted

stop_signal = ""  # name of the first signal received; empty: none yet
before_exit: list[Callable[[], None]] = []  # called by a second signal before it ends the process


def signal_number() -> int:
    """Return ``stop_signal`` as the number that ranks exchange: 0, or 1 + its position in HANDLED."""
    return HANDLED.index(stop_signal) + 1 if stop_signal else 0


def signal_name(number: int) -> str:
    """Return the name of the signal that ``number()`` stands for; empty for 0."""
    return HANDLED[number - 1] if number else ""


def listen_for_signals() -> None:
    """Handle the signals HANDLED from now on; until then each of them ends the process at once."""
    # Non-blocking, because the handler in C may write at any moment, and a full pipe would stop the run for ever.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in NUMBERS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_read, args=(reading,), daemon=True).start()


@contextmanager
def block_signals() -> Iterator[None]:
    """Hold the signals HANDLED back, here and in processes started meanwhile; these call ``unblock_signals``."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock_signals() -> None:
    """Deliver the signals HANDLED that the parent process held back, and all later ones."""
    held_back = signal.sigpending() & set(NUMBERS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
    deadline = time.monotonic() + NOTE_SECONDS
    while held_back and not stop_signal and time.monotonic() < deadline:
        time.sleep(0.001)  # until the listening thread has noted it


def _read(pipe: int) -> None:
    """Note the first signal; end the process at a later one, unless it comes within TOGETHER seconds."""
    global stop_signal
    numbers = dict(zip(NUMBERS, HANDLED, strict=True))
    first = 0.0
    while True:
        for number in os.read(pipe, 64):
            if number not in numbers:
                continue
            if not stop_signal:
                stop_signal, first = numbers[number], time.monotonic()
            elif time.monotonic() - first > REPEAT_SECONDS:
                # os._exit, because at the usual end of Python MPI waits for ranks that do not know of the signal.
                for act in before_exit:
                    act()
                os._exit(128 + number)
