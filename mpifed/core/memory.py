"""Checks before an array is allocated: is there memory for it, and can the file hold as much as it declares?"""

import contextlib
import ctypes
import math
import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError

SMALL = 1 << 28  # bytes: smaller arrays are not checked
LONGEST_TEXT = 1000  # characters of a label or of the name of a client: numpy stores every one as long as the longest
M_TRIM_THRESHOLD = -1  # options of mallopt in glibc
M_TOP_PAD = -2
M_MMAP_THRESHOLD = -3
KEPT = 1 << 30  # bytes: larger arrays are returned to the system when they are freed
MOST_PACKED = 1100  # bytes that one compressed byte can hold, at most; deflate reaches 1032


def keep_freed() -> None:
    """Let the C library keep the memory of large arrays that are freed, for the next ones, as long as the process.

    Otherwise every temporary array of some MB is new memory, and the system fills it with zeros, page by page, which
    takes longer than most computations with it. Where the library is another one than glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, size in ((M_MMAP_THRESHOLD, KEPT), (M_TRIM_THRESHOLD, KEPT), (M_TOP_PAD, 1 << 26)):
            library.mallopt(option, size)


def free() -> int:
    """Free memory in bytes: that of the machine, or what is left of the limit of this process if that is less."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        most = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Batch systems limit the address space of a process, often far below the memory of the machine.
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most if limit == resource.RLIM_INFINITY else min(most, max(0, limit - taken()))


def taken() -> int:
    """Bytes of address space that this process has; 0 where the system does not say it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (OSError, ValueError):
        return 0


def check_memory(size: int, what: str) -> None:
    """UserError where ``what`` needs more bytes than are free."""
    if size > SMALL and size > (most := free()):
        raise UserError(f"{what} would take {size / 1e6:,.0f} MB of memory, but only {most / 1e6:,.0f} MB are free")


def size_of(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of an array of this shape, computed without overflow."""
    return itemsize * math.prod(map(int, shape))


def check_declared(size: int, stored: int, what: str) -> None:
    """UserError where ``what`` declares ``size`` bytes, more than ``stored`` compressed bytes can hold."""
    if size > SMALL and size > MOST_PACKED * stored:
        held = f"its {stored:,} bytes in the file cannot hold so many, even compressed"
        raise UserError(f"{what} declares {size:,} bytes, but {held}")


def check_text(length: int, what: str) -> None:
    """UserError where ``what`` has a text of more than LONGEST_TEXT characters."""
    if length > LONGEST_TEXT:
        raise UserError(
            f"{what} has a text of {length:,} characters: a label or the name of a client has at most {LONGEST_TEXT:,}"
        )


def characters(dtype: np.dtype[Any]) -> int:
    """Characters that each text of numpy's type for bytes or text has room for; 0 where that is not fixed."""
    return dtype.itemsize // (4 if dtype.kind == "U" else 1)
