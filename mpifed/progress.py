"""How far a run is: one line in place on a terminal, a line every few seconds elsewhere."""
from __future__ import annotations

import sys
import time
from typing import TextIO

SECONDS_TERMINAL = 0.1
SECONDS_LOG = 5.0


class Progress:
    """Tells rounds, objective, gradient and the seconds left, at most; silent where ``stream`` is None."""

    def __init__(self, stream: TextIO | None = sys.stderr) -> None:
        self.stream = stream
        self.terminal = stream is not None and stream.isatty()
        self.begun = self.told = time.monotonic()
        self.values = (float("nan"), float("nan"))

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        """The state after ``round`` of at most ``rounds``; ``row`` is what was recorded."""
        if self.stream is None:
            return
        if "objective" in row:
            self.values = (row["objective"], row["grad_norm_sq"])
        now = time.monotonic()
        if now - self.told < (SECONDS_TERMINAL if self.terminal else SECONDS_LOG):
            return
        self.told = now
        left = (now - self.begun) / max(round, 1) * (rounds - round)
        text = (f"round {round} of at most {rounds}  f {self.values[0]:.6g}  ‖∇f‖² {self.values[1]:.2e}  "
                f"at most {duration(left)} left")
        self.stream.write(f"\r{text}\033[K" if self.terminal else text + "\n")
        self.stream.flush()

    def note(self, text: str) -> None:
        """Say something on a line of its own."""
        if self.stream is not None:
            self.stream.write(f"mpifed: {text}\n")

    def close(self) -> None:
        """Leave the line clean."""
        if self.terminal and self.stream is not None:
            self.stream.write("\r\033[K")
            self.stream.flush()


def duration(seconds: float) -> str:
    """Seconds as 42 s, 3 min, 5.2 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
