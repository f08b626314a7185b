"""Checks before an array is allocated: of the free memory, and of the size that a file declares."""

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

SMALL = 1 << 28  # bytes; smaller arrays are not checked
LONGEST_TEXT = 1000  # characters of a label or a client's name, because numpy gives every text the room of the longest
M_TRIM_THRESHOLD = -1  # options of mallopt in glibc
M_TOP_PAD = -2
M_MMAP_THRESHOLD = -3
KEPT = 1 << 30  # bytes; larger arrays are returned to the system when they are freed
MAX_COMPRESSION = 1100  # the most bytes that one compressed byte can hold; deflate reaches 1032


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed large arrays for later ones, until the process ends.

    Otherwise every temporary array of some MB is new memory, and the system fills it with zeros page by page, which
    takes longer than most computations with it. Libraries other than glibc ignore this.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, size in ((M_MMAP_THRESHOLD, KEPT), (M_TRIM_THRESHOLD, KEPT), (M_TOP_PAD, 1 << 26)):
            library.mallopt(option, size)


def free() -> int:
    """Return the free memory in bytes: of the machine, or up to the limit of this process if that is less."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        available = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Batch systems limit the address space of a process, often far below the memory of the machine.
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return available if limit == resource.RLIM_INFINITY else min(available, max(0, limit - address_space_bytes()))


def address_space_bytes() -> int:
    """Return the bytes of address space that this process has; 0 if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (OSError, ValueError):
        return 0


def check_memory(size: int, what: str) -> None:
    """Raise UserError if ``what`` needs more bytes than are free."""
    if size > SMALL and size > (bound := free()):
        raise UserError(f"{what} would take {size / 1e6:,.0f} MB of memory, but only {bound / 1e6:,.0f} MB are free")


def bytes_of_shape(shape: Sequence[int], itemsize: int) -> int:
    """Compute the bytes of an array of this shape, without overflow."""
    return itemsize * math.prod(map(int, shape))


def check_declared_size(size: int, stored: int, what: str) -> None:
    """Raise UserError if ``what`` declares ``size`` bytes, more than ``stored`` compressed bytes can hold."""
    if size > SMALL and size > MAX_COMPRESSION * stored:
        held = f"its {stored:,} bytes in the file cannot hold so many, even compressed"
        raise UserError(f"{what} declares {size:,} bytes, but {held}")


def check_text_length(length: int, what: str) -> None:
    """Raise UserError if ``what`` has a text of more than LONGEST_TEXT characters."""
    if length > LONGEST_TEXT:
        raise UserError(
            f"{what} has a text of {length:,} characters: a label or the name of a client has at most {LONGEST_TEXT:,}"
        )


def text_capacity(dtype: np.dtype[Any]) -> int:
    """Return how many characters each text of a numpy dtype for bytes or text can hold; 0 if that is not fixed."""
    return dtype.itemsize // (4 if dtype.kind == "U" else 1)
