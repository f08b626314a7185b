"""Standard output and error of the commands: a full disk, or an encoding that lacks a mark, ends no run."""

import os
import sys
from typing import Any

from mpifed.core import encodings


class Output:
    """The stream of text ``stream``. What it cannot write is left out, and ``lost`` is the first error.

    Raises BrokenPipeError where nobody reads any more.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        try:
            self.stream.write(text)
        except OSError as error:
            self.leave(error)
        return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            self.leave(error)

    def leave(self, error: OSError) -> None:
        # else Python would try again to write what waits, when it ends
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            raise error
        self.lost = self.lost or error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def install() -> Output:
    """Write standard output and error in this way from here on; returns standard output."""
    encodings.tolerate()
    out = Output(sys.stdout)
    sys.stdout, sys.stderr = out, Output(sys.stderr)  # type: ignore[assignment]
    return out
