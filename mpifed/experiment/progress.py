"""Progress of a run: one line, rewritten in place on a terminal, a new one every few seconds elsewhere."""

import sys
import time
from contextlib import suppress
from typing import TextIO

from mpifed.core.errors import escape_unprintable

SECONDS_TERMINAL = 0.1
SECONDS_LOG = 5.0


class Progress:
    """The line of round, objective, gradient and an upper bound of the time left; silent where ``stream`` is None.

    ``stop`` says why the run is to end after the present round; empty: it goes on.
    """

    stop = ""
    before: int | None = None  # rounds before this process, set when the first round is shown

    def __init__(self, stream: TextIO | None = sys.stderr) -> None:
        self.stream = stream
        self.terminal = stream is not None and stream.isatty()
        self.begun = self.shown = time.monotonic()
        self.values = (float("nan"), float("nan"))

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        """Show the state after ``round`` of at most ``rounds``; ``row`` holds the recorded values."""
        if self.stream is None:
            return
        if "objective" in row:
            self.values = (row["objective"], row["grad_norm_sq"])
        if self.before is None:
            self.before = max(round - 1, 0)
        if self.due():
            left = (self.shown - self.begun) / max(round - self.before, 1) * (rounds - round)
            self.put(
                f"round {round} of at most {rounds}  f {self.values[0]:.6g}  ‖∇f‖² {self.values[1]:.2e}  "
                f"at most {format_duration(left)} left"
            )

    def due(self) -> bool:
        """Return True if it is time to write again; if so, start the time anew."""
        now = time.monotonic()
        if self.stream is None or now - self.shown < (SECONDS_TERMINAL if self.terminal else SECONDS_LOG):
            return False
        self.shown = now
        return True

    def put(self, text: str) -> None:
        """Write the line of progress."""
        self.write(f"\r{text}\033[K" if self.terminal else text + "\n")

    def note(self, text: str) -> None:
        """Write a message on a line of its own."""
        self.write(f"mpifed: {escape_unprintable(text)}\n")

    def write(self, text: str) -> None:
        # a failed write must not end the run, for example where standard error goes to a full disk
        if self.stream is not None:
            with suppress(OSError):
                self.stream.write(text)
                self.stream.flush()

    def close(self) -> None:
        """Clear the line of progress."""
        if self.terminal:
            self.put("")


def format_duration(seconds: float) -> str:
    """Format seconds as 42 s, 3 min, 5.2 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
