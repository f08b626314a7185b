"""Standard output and error of the commands: a full disk, or an encoding that lacks a mark, ends no run."""

import io
import os
import sys
from typing import Any

from mpifed.core.encodings import ERRORS


class Output(io.TextIOWrapper):
    """A stream of text. What it cannot write on a full disk is left out, and ``lost`` is the first error.

    Raises BrokenPipeError where nobody reads any more.
    """

    lost: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self.leave(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.leave(error)

    def leave(self, error: OSError) -> None:
        # else Python would try again to write what waits, when it ends
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if type(error) is BrokenPipeError:
            raise error
        self.lost = self.lost or error


def install() -> Any:
    """Write standard output and error in this way from here on; returns standard output, None where it is closed."""
    sys.stdout = out = opened(sys.stdout)
    sys.stderr = opened(sys.stderr)
    return out


def opened(stream: Any) -> Any:
    """An output in the place of ``stream``, which is of no use then; None where that is closed."""
    if stream is None:
        return None
    form = {name: getattr(stream, name) for name in ("encoding", "line_buffering", "write_through")}
    return Output(stream.detach(), errors=ERRORS, **form)
