"""A file on disk that a reader can open at any instant, also after the process that writes it was killed."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from mpifed.core.files import lock

HEAD = 96  # bytes with which an HDF5 file begins, which say where it ends
LARGEST = 1 << 28  # bytes of a file that is copied for changes that no order of writing makes safe


class CrashSafeFile:
    """A file object for HDF5's driver of file objects. Between two flushes, readers see no change.

    Bytes beyond the end that readers know are written at once, unless a waiting write reaches as far. Bytes before it
    wait for the flush, which writes them in the order of ``urgency`` (offset, content -> sort key), so that nothing
    ever points to something that is not there; this requires that HDF5 never reuses space. Changes that no order makes
    safe are made in a copy, see ``renewed``.
    HDF5 does not survive a disk error: after the first one, kept in ``error``, everything stays in memory.
    """

    handle = -1

    def __init__(self, path: Path, urgency: Callable[[int, bytes], tuple[int, int]]) -> None:
        self.path = path
        self.urgency = urgency
        self.handle = locked(path)
        self.position = 0
        self.length = 0
        self.end = 0  # of the part that readers know, and of what waits
        self.public = False  # before publishing there are no readers, so no write needs to wait
        self.waiting: dict[tuple[int, int], bytes] = {}  # (offset, length) -> content, the last one written last
        self.error: OSError | None = None
        self.known = (0, b"")  # how long the file was after the last flush, at least, and its first bytes
        self.spoil = ""  # what became of its content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + (self.length if whence == os.SEEK_END else 0)
        return self.position

    def tell(self) -> int:
        return self.position

    def write(self, data: memoryview) -> int:
        offset = self.position
        self.position += len(data)
        if (self.public and offset < self.end) or not self._tried(lambda: put(self.handle, data, offset)):
            # Taken out first: a dict keeps the place of a key that is written again, and of two writes that overlap
            # the later one must come last.
            self.waiting.pop((offset, len(data)), None)
            self.waiting[offset, len(data)] = bytes(data)
            self.end = max(self.end, self.position)
        self.length = max(self.length, self.position)
        return len(data)

    def readinto(self, buffer: memoryview) -> int:
        first = self.position
        self.position += len(buffer)
        get(self.handle, buffer, first)
        for (offset, length), data in self.waiting.items():
            a, b = max(first, offset), min(self.position, offset + length)
            if a < b:
                buffer[a - first : b - first] = data[a - offset : b - offset]
        return len(buffer)

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        self.readinto(memoryview(buffer))
        return bytes(buffer)

    def truncate(self, size: int) -> None:
        self.length = size

    def reserve(self, size: int) -> None:
        """Allocate ``size`` bytes behind the end until the next flush. OSError where the disk has no room."""
        if self.spoiled():
            raise OSError(errno.EIO, self.spoil)
        os.posix_fallocate(self.handle, self.length, size)

    def flush(self) -> None:
        if self._tried(self._write):
            self.waiting = {}
            self.end = self.length
            self.known = (self.length, os.pread(self.handle, HEAD, 0))

    def spoiled(self) -> str:
        """What happened to the content of a published file: "truncated by another program" …; empty: nothing."""
        length, head = self.known
        if self.public and not self.spoil:
            if os.fstat(self.handle).st_size < length:
                self.spoil = "truncated by another program"
            elif os.pread(self.handle, len(head), 0) != head:
                self.spoil = "written over by another program"
        return self.spoil

    def synchronise(self) -> None:
        """Wait until the disk has what was flushed."""
        self._tried(lambda: os.fsync(self.handle))

    def _write(self) -> None:
        if self.spoiled():  # it is another program's by now
            raise OSError(errno.EIO, self.spoil)
        # Longer before the writes and shorter after them: no address in the file ever lies behind its end.
        if os.fstat(self.handle).st_size < self.length:
            os.ftruncate(self.handle, self.length)
        # In the order of urgency only where no two overlap; where some do, the order in which HDF5 wrote them.
        writes = [(offset, data) for (offset, _), data in self.waiting.items()]
        if all(offset + length <= after for (offset, length), (after, _) in pairwise(sorted(self.waiting))):
            writes.sort(key=lambda write: self.urgency(*write))
        for offset, data in writes:
            put(self.handle, data, offset)
        if os.fstat(self.handle).st_size > self.length:
            os.ftruncate(self.handle, self.length)

    def _tried(self, action: Callable[[], None]) -> bool:
        """Run ``action`` unless the disk has failed before; whether it succeeded."""
        try:
            if self.error is None:
                action()
        except OSError as error:
            self.error = error
        return self.error is None

    def publish(self, target: Path) -> None:
        """Tell the file its final name, which it has got by now, and that it has readers."""
        self.path = target
        self.public = True
        self.end = self.length
        self.part.unlink(missing_ok=True)  # left by a run that was killed

    def fate(self) -> str:
        """What became of a published file: empty where its name leads to it, else "moved to …", "removed" …"""
        try:
            named = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return ""  # the file system does not answer; writing will tell
        else:
            same = os.path.samestat(named, os.fstat(self.handle))
            return self.spoiled() if same else "replaced by another file"
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
    def renewed(self, flush: Callable[[], None], precious: bool) -> Iterator[None]:
        """Make the changes of this context in a copy, which replaces the file when it is complete.

        ``flush`` lets HDF5 write its buffers. A ``precious`` copy is synchronised to disk before it replaces the file.
        Where no copy can be made, the changes go to the file itself.
        """
        # The old file stays open until the copy has its name: readers may be at it, and where the copy fails it is
        # what is left.
        flush()
        before = self.handle
        copied = self.public and self.error is None and self._copied()
        self.public = self.public and not copied
        try:
            yield
        finally:
            flush()
            if copied:
                if precious:
                    self.synchronise()
                self.public = self._tried(lambda: os.replace(self.part, self.path))
                self.part.unlink(missing_ok=True)
                os.close(before)

    def _copied(self) -> bool:
        """Copy the file and write to the copy from here on.

        False, and nothing changes, where the file is large, the disk is full, or another file has the name now.
        """
        try:
            if self.length > LARGEST or not os.path.samestat(os.stat(self.path), os.fstat(self.handle)):
                return False
            shutil.copy(self.path, self.part)
            self.handle = locked(self.part)
        except OSError:
            self.part.unlink(missing_ok=True)
            return False
        return True

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    __del__ = close


def locked(path: Path) -> int:
    """Open a file for writing, with locks against other writers, where the file system has locks."""
    handle = os.open(path, os.O_RDWR)
    lock(handle)
    return handle


def put(handle: int, data: memoryview | bytes, offset: int) -> None:
    data = memoryview(data)
    while len(data):
        count = os.pwrite(handle, data, offset)
        data, offset = data[count:], offset + count


def get(handle: int, buffer: memoryview, offset: int) -> None:
    """Fill ``buffer`` with the bytes at an offset of a file, with zeros beyond its end."""
    while len(buffer):
        count = os.preadv(handle, [buffer], offset)
        if not count:
            buffer[:] = bytes(len(buffer))
        buffer, offset = buffer[count or len(buffer) :], offset + count
