"""Whether there is memory for an array, asked before it is made: what a file declares may be more than it holds."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from mpifed.core.errors import UserError

SMALL = 1 << 28  # bytes that nobody is asked for
PACKED = 1100  # bytes of one packed byte, at most: deflate reaches 1032


def free() -> int:
    """Bytes that the machine still has, or the limit of this process where that is less."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        most = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most if limit == resource.RLIM_INFINITY else min(most, limit)


def room(size: int, what: str) -> None:
    """UserError where ``what`` needs more than the memory that is free."""
    if size > SMALL and size > (most := free()):
        raise UserError(f"{what} would take {size / 1e6:,.0f} MB of memory, and {most / 1e6:,.0f} MB are free")


def size_of(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of an array, in whole numbers of any size."""
    return itemsize * math.prod(map(int, shape))


def declared(size: int, held: int, what: str) -> None:
    """UserError where ``what`` declares far more bytes than what the file holds of it can unpack to."""
    if size > SMALL and size > PACKED * held:
        raise UserError(
            f"{what} declares {size:,} bytes, and the file holds {held:,} of them, fewer than any packing leaves"
        )
