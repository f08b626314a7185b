"""A file on disk that a reader can open at any instant, also when the process that writes it is killed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

LARGEST = 1 << 28  # bytes of a file that is copied for changes that no order makes safe


class Disk:
    """A file as HDF5's driver for file objects wants it, in which between two flushes nothing changes that a reader sees.

    What lies behind the end of the file is written at once. What lies before it waits for the flush, which writes it in the
    order of ``urgency`` (place, content -> what comes first), so that nothing ever points to what is not there; this
    presumes that HDF5 uses no space twice. What no order makes safe is done in a copy, see ``renewed``. HDF5 does not survive
    errors of a disk: after the first, ``error``, everything stays in memory.
    """

    handle = -1

    def __init__(self, place: Path, urgency: Callable[[int, bytes], tuple[int, int]]) -> None:
        self.place, self.urgency = place, urgency
        self.handle = locked(place)
        self.at = self.length = self.end = 0  # end: of what readers know
        self.public = False  # before, nothing needs to wait
        self.waiting: dict[tuple[int, int], bytes] = {}  # (place, length) -> content, the last one written last
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.at = offset + (self.length if whence == os.SEEK_END else 0)
        return self.at

    def tell(self) -> int:
        return self.at

    def write(self, data: memoryview) -> int:
        place, self.at = self.at, self.at + len(data)
        if (self.public and place < self.end) or not self._tried(lambda: put(self.handle, data, place)):
            self.waiting.pop((place, len(data)), None)
            self.waiting[place, len(data)] = bytes(data)
        self.length = max(self.length, self.at)
        return len(data)

    def readinto(self, buffer: memoryview) -> int:
        first, self.at = self.at, self.at + len(buffer)
        get(self.handle, buffer, first)
        for (place, length), data in self.waiting.items():
            a, b = max(first, place), min(self.at, place + length)
            if a < b:
                buffer[a - first : b - first] = data[a - place : b - place]
        return len(buffer)

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        self.readinto(memoryview(buffer))
        return bytes(buffer)

    def truncate(self, size: int) -> None:
        """The file is to have this length, once what is waiting is in it."""
        self.length = size

    def reserve(self, size: int) -> None:
        """Take so many bytes behind the end from the disk, until the next flush. OSError where it has no room."""
        os.posix_fallocate(self.handle, self.length, size)

    def flush(self) -> None:
        if self._tried(self._write):
            self.waiting, self.end = {}, self.length

    def _write(self) -> None:
        if os.fstat(self.handle).st_size < self.length:
            os.ftruncate(self.handle, self.length)
        writes = [(place, data) for (place, _), data in self.waiting.items()]
        if all(place + length <= after for (place, length), (after, _) in pairwise(sorted(self.waiting))):
            writes.sort(key=lambda write: self.urgency(*write))
        for place, data in writes:
            put(self.handle, data, place)
        if os.fstat(self.handle).st_size > self.length:
            os.ftruncate(self.handle, self.length)

    def _tried(self, action: Callable[[], None]) -> bool:
        """Whether the disk did it."""
        try:
            if self.error is None:
                action()
        except OSError as error:
            self.error = error
        return self.error is None

    def publish(self, target: Path) -> None:
        """From here on the file has this name and readers."""
        self.place, self.public, self.end = target, True, self.length
        self.part.unlink(missing_ok=True)  # of a run that was killed

    @property
    def part(self) -> Path:
        return self.place.with_name(f".{self.place.name}.part")

    @contextmanager
    def renewed(self, flush: Callable[[], None], precious: bool) -> Iterator[None]:
        """What is done in here goes to a copy, which takes the place of the file when it is complete.

        ``flush`` lets HDF5 write what it holds; a ``precious`` copy is on the disk before it takes the place. Where no copy
        can be made it goes to the file itself.
        """
        flush()
        before = self.handle
        copied = self.public and self.error is None and self._copied()
        self.public = self.public and not copied
        try:
            yield
        finally:
            flush()
            if copied:
                self.public = self._tried(lambda: self._replace(precious))
                self.part.unlink(missing_ok=True)
                os.close(before)

    def _copied(self) -> bool:
        """Go on in a copy; whether that is possible: not where it is large, there is no room, or another file has the name."""
        try:
            if self.length > LARGEST or not os.path.samestat(os.stat(self.place), os.fstat(self.handle)):
                return False
            shutil.copy(self.place, self.part)
            self.handle = locked(self.part)
        except OSError:
            self.part.unlink(missing_ok=True)
            return False
        return True

    def _replace(self, precious: bool) -> None:
        if precious:
            os.fsync(self.handle)
        os.replace(self.part, self.place)

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    __del__ = close


def locked(path: Path) -> int:
    """A file that is open for writing, with the lock that HDF5 takes, where the file system has locks."""
    handle = os.open(path, os.O_RDWR)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def put(handle: int, data: memoryview | bytes, place: int) -> None:
    """Write bytes to a place of a file, all of them."""
    data = memoryview(data)
    while len(data):
        count = os.pwrite(handle, data, place)
        data, place = data[count:], place + count


def get(handle: int, buffer: memoryview, place: int) -> None:
    """Read bytes from a place of a file; behind its end are zeros."""
    while len(buffer):
        count = os.preadv(handle, [buffer], place)
        if not count:
            buffer[:] = bytes(len(buffer))
        buffer, place = buffer[count or len(buffer) :], place + count
