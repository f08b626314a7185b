"""What commands print: on rank 0 alone, without control characters."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mpifed.core.errors import printable, sentence

if TYPE_CHECKING:
    from mpifed.sweeps.tally import Line


def say(text: str, speaks: bool = True, keep: str = "\n") -> None:
    """Print a line where ``speaks``; control characters but those in ``keep`` are escaped."""
    if speaks:
        print(printable(text, keep), flush=True)


def tell(lines: Iterable[Line], first: bool, speaks: bool) -> int:
    """Print lines about many runs, failures at the ``first`` rank and others where it ``speaks``; 1 if one failed."""
    failed = False
    for line in lines:
        failed = failed or not line.fine
        if first and not line.fine:
            sys.stderr.write(f"mpifed: {sentence(line.text)}\n")
        else:
            say(line.text, speaks)
    return int(failed)
