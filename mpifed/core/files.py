"""Files that get their name only when they are complete, and result files that do not overwrite others by accident."""

import errno
import fcntl
import os
import stat
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from mpifed.core.errors import RunError, UserError, reason

EXISTS = "{} exists; say --force to overwrite it or -o for another name"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # no other name would help


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to read its bytes. OSError where it cannot be read, or is a pipe or a device: these may never end."""
    # Not blocking, because to open a pipe would wait for its writer. The mode is that of the open file: between a
    # question about a path and the opening it may become another file.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device", os.fspath(path))


def text_of(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8, of which a byte order mark is no part. OSError as ``open_file``, and ValueError."""
    with open_file(path) as file:
        return file.read().decode("utf-8-sig")


@contextmanager
def atomic_file(path: Path, rename: Callable[[Path, Path], None] = os.replace) -> Iterator[Path]:
    """Yield the path of a new, empty file in the folder of ``path``; rename it to ``path`` on success.

    On failure the new file is removed and ``path`` stays as it was. OSError where the folder or disk refuses.
    """
    # In the same folder, because a file can be renamed within a file system alone.
    part = path.with_name(f".mpifed-{uuid.uuid4().hex[:12]}")
    part.touch(exist_ok=False)
    try:
        yield part
        rename(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replacing(path: str | os.PathLike[str], force: bool) -> Iterator[Path]:
    """``atomic_file`` for a file that the user has named: an existing one is replaced only with ``force``.

    A link to a file stands for that file. UserError where the file exists and ``force`` is not given, also if it was
    created meanwhile, and where it cannot be written; RunError where the disk is full or broken.
    """
    name = os.fspath(path)
    target = checked_target(name, force)
    try:
        with atomic_file(target, os.replace if force else rename_new) as part:
            yield part
    except OSError as error:
        raise unwritable(name, error) from None


def unwritable(name: str, error: OSError) -> UserError | RunError:
    """The exception for a file that cannot be written: a full or broken disk is no mistake of the user."""
    kind = RunError if error.errno in NO_ROOM else UserError
    return kind(f"{name} cannot be written: {reason(error)}")


def checked_target(name: str, force: bool) -> Path:
    """The file that ``name`` stands for, links followed; UserError where it must not be written."""
    if not name:
        raise UserError("-o '' is wrong: a result file needs a name")
    try:
        target = Path(os.path.realpath(name))
        if target.exists():
            if not target.is_file():
                raise UserError(f"{name} is not a file: say -o for another name")
            if not force:
                raise UserError(EXISTS.format(name))
            if being_written(target):
                raise UserError(f"{name} is being written by another run: say -o for another name")
        elif os.path.islink(name):
            raise UserError(f"{name} is a link to {os.readlink(name)}, which does not exist: say -o for another name")
        elif not target.parent.is_dir():
            raise UserError(f"{name} cannot be written: there is no folder {os.path.dirname(name)}")
    except (OSError, ValueError) as error:
        raise UserError(f"{name} cannot be written: {reason(error)}") from None
    return target


def lock(handle: int) -> None:
    """Mark an open file as one that is being written, where the file system has locks: others may read it."""
    # HDF5 locks by flock what it opens, to read (shared) or to write (alone): with a shared one its readers come, and
    # its writers do not. The mark that this is a writer is a lock of the other kind. It belongs to the open file, not
    # to the process, which would lose it by closing the file elsewhere.
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        kind = fcntl.LOCK_SH
    except (AttributeError, OSError):  # no Linux
        kind = fcntl.LOCK_EX
    with suppress(OSError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)


def check_length(name: str, added: int) -> None:
    """UserError where a name has no room for ``added`` bytes: those of the longest name beside it."""
    target = os.path.realpath(name)
    try:
        most = os.pathconf(os.path.dirname(target), "PC_NAME_MAX") - added
    except (OSError, ValueError):
        return  # no such folder, which the writing says, or no such limit
    if len(os.fsencode(os.path.basename(target))) > most:
        raise UserError(f"-o {name} is wrong: the name of a result has at most {most} bytes here")


def being_written(path: Path) -> bool:
    """Whether a process has a file open to write: a run of mpifed, or a program with HDF5."""
    with open_file(path) as file:
        for locked in (fcntl.lockf, fcntl.flock):
            try:
                locked(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                pass  # a file system without locks
    return False


def rename_new(part: Path, target: Path) -> None:
    """Rename where no other file has the name: it is taken by a hard link or, where there are none, an empty file."""
    # os.replace alone would overwrite a file that another run has made since it was looked for.
    try:
        try:
            os.link(part, target)
        except FileExistsError:
            raise
        except OSError:
            target.touch(exist_ok=False)
    except FileExistsError:
        raise UserError(EXISTS.format(target)) from None
    os.replace(part, target)


def claim(names: Iterable[str]) -> str:
    """Create an empty file under the first name that is free, so that no other process takes it; returns that name.

    UserError where no file can be created, RunError where the disk is full.
    """
    for name in names:
        try:
            Path(name).touch(exist_ok=False)
            return name
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(name, error) from None
    raise ValueError("there is no name")


def unclaim(name: str) -> None:
    with suppress(OSError):
        if not os.path.getsize(name):
            os.unlink(name)


def synchronise(path: str | os.PathLike[str]) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
