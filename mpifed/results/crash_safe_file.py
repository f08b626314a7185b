"""A file on disk that a reader can open at any instant, also after its writer was killed."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from mpifed.core.files import lock_for_writing

HEAD = 96  # bytes at the beginning of an HDF5 file, with its end
LARGEST = 1 << 28  # maximum bytes of a file that is copied for changes that are safe in no order


class CrashSafeFile:
    """A file object for HDF5's driver of file objects. Between two flushes, readers see no change.

    Bytes beyond the end that readers know are written at once, unless a waiting write reaches as far. Bytes before it
    wait for the flush, which writes them in the order of ``urgency`` (offset, content -> sort key), so that nothing
    ever points to something that is not there; this requires that HDF5 never reuses space. Changes that are safe in no
    order are made in a copy. HDF5 does not survive a disk error: after the first one, kept in ``error``, everything
    stays in memory.
    """

    handle = -1

    def __init__(self, path: Path, urgency: Callable[[int, bytes], tuple[int, int]]) -> None:
        self.path = path
        self.urgency = urgency
        self.handle = open_locked(path)
        self.position = 0
        self.length = 0
        self.end = 0  # of the bytes that readers know and of those that wait
        self.public = False  # before publishing there are no readers, so no write needs to wait
        self.waiting: dict[tuple[int, int], bytes] = {}  # (offset, length) -> content, in the order of writing
        self.error: OSError | None = None
        self.flushed = (0, b"")  # minimum length of the file since the last flush, and its first bytes
        self.damage = ""  # damage by another program; empty: none

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + (self.length if whence == os.SEEK_END else 0)
        return self.position

    def tell(self) -> int:
        return self.position

    def write(self, data: memoryview) -> int:
        offset = self.position
        self.position += len(data)
        if (self.public and offset < self.end) or not self._attempt(lambda: write_at(self.handle, data, offset)):
            # Removed first: a dict keeps the position of a key that is written again, but of two overlapping writes the
            # later one must come last.
            self.waiting.pop((offset, len(data)), None)
            self.waiting[offset, len(data)] = bytes(data)
            self.end = max(self.end, self.position)
        self.length = max(self.length, self.position)
        return len(data)

    def readinto(self, buffer: memoryview) -> int:
        first = self.position
        self.position += len(buffer)
        read_at(self.handle, buffer, first)
        for (offset, length), data in self.waiting.items():
            start, stop = max(first, offset), min(self.position, offset + length)
            if start < stop:
                buffer[start - first : stop - first] = data[start - offset : stop - offset]
        return len(buffer)

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        self.readinto(memoryview(buffer))
        return bytes(buffer)

    def truncate(self, size: int) -> None:
        self.length = size

    def reserve(self, size: int) -> None:
        """Allocate ``size`` bytes behind the end until the next flush. OSError where the disk has no room."""
        if self.find_damage():
            raise OSError(errno.EIO, self.damage)
        os.posix_fallocate(self.handle, self.length, size)

    def flush(self) -> None:
        if self._attempt(self._write):
            self.waiting = {}
            self.end = self.length
            self.flushed = (self.length, os.pread(self.handle, HEAD, 0))

    def find_damage(self) -> str:
        """Return the damage to a published file, such as "truncated by another program"; empty: none."""
        length, head = self.flushed
        if self.public and not self.damage:
            if os.fstat(self.handle).st_size < length:
                self.damage = "truncated by another program"
            elif os.pread(self.handle, len(head), 0) != head:
                self.damage = "written over by another program"
        return self.damage

    def synchronise(self) -> None:
        """Wait until the disk has everything that was flushed."""
        self._attempt(lambda: os.fsync(self.handle))

    def _write(self) -> None:
        if self.find_damage():  # the file belongs to another program now
            raise OSError(errno.EIO, self.damage)
        # Extend before the writes and shorten after them: no address in the file ever lies behind its end.
        if os.fstat(self.handle).st_size < self.length:
            os.ftruncate(self.handle, self.length)
        # Overlapping writes must stay in the order in which HDF5 made them; others are sorted by urgency.
        writes = [(offset, data) for (offset, _), data in self.waiting.items()]
        if all(offset + length <= after for (offset, length), (after, _) in pairwise(sorted(self.waiting))):
            writes.sort(key=lambda write: self.urgency(*write))
        for offset, data in writes:
            write_at(self.handle, data, offset)
        if os.fstat(self.handle).st_size > self.length:
            os.ftruncate(self.handle, self.length)

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Run ``action`` unless the disk has failed before; return whether it succeeded."""
        try:
            if self.error is None:
                action()
        except OSError as error:
            self.error = error
        return self.error is None

    def publish(self, target: Path) -> None:
        """Record the final name of the file, which it has by now, and that it has readers."""
        self.path = target
        self.public = True
        self.end = self.length
        self.part.unlink(missing_ok=True)  # left by a run that was killed

    def describe_fate(self) -> str:
        """Return the fate of a published file: empty where its name leads to it, else "moved to …", "removed" …"""
        try:
            named = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return ""  # the file system does not answer; the next write will fail
        else:
            same = os.path.samestat(named, os.fstat(self.handle))
            return self.find_damage() if same else "replaced by another file"
        if not os.fstat(self.handle).st_nlink:
            return "removed"
        try:
            return f"moved to {os.readlink(f'/proc/self/fd/{self.handle}')}"
        except OSError:
            return "moved"

    @property
    def part(self) -> Path:
        return self.path.with_name(f".{self.path.name}.part")

    @contextmanager
    def change_atomically(self, flush: Callable[[], None], precious: bool) -> Iterator[None]:
        """Make the changes of this context in a copy, which replaces the file when it is complete.

        ``flush`` lets HDF5 write its buffers. A ``precious`` copy is synchronised to disk before it replaces the file.
        Where no copy can be made, the changes go to the file itself.
        """
        # The old file stays open until the copy has its name: readers may use it, and it is needed where the copy
        # fails.
        flush()
        before = self.handle
        copied = self.public and self.error is None and self._start_copy()
        self.public = self.public and not copied
        try:
            yield
        finally:
            flush()
            if copied:
                if precious:
                    self.synchronise()
                self.public = self._attempt(lambda: os.replace(self.part, self.path))
                self.part.unlink(missing_ok=True)
                os.close(before)

    def _start_copy(self) -> bool:
        """Copy the file and write to the copy from now on; return whether that worked.

        Nothing changes where the file is large, the disk is full, or another file has the name by now.
        """
        try:
            if self.length > LARGEST or not os.path.samestat(os.stat(self.path), os.fstat(self.handle)):
                return False
            shutil.copy(self.path, self.part)
            self.handle = open_locked(self.part)
        except OSError:
            self.part.unlink(missing_ok=True)
            return False
        return True

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    __del__ = close


def open_locked(path: Path) -> int:
    """Open a file for writing and lock it against other writers, where the file system has locks."""
    handle = os.open(path, os.O_RDWR)
    lock_for_writing(handle)
    return handle


def write_at(handle: int, data: memoryview | bytes, offset: int) -> None:
    data = memoryview(data)
    while len(data):
        count = os.pwrite(handle, data, offset)
        data, offset = data[count:], offset + count


def read_at(handle: int, buffer: memoryview, offset: int) -> None:
    """Fill ``buffer`` with the bytes at an offset of a file, and with zeros beyond its end."""
    while len(buffer):
        count = os.preadv(handle, [buffer], offset)
        if not count:
            buffer[:] = bytes(len(buffer))
        buffer, offset = buffer[count or len(buffer) :], offset + count
