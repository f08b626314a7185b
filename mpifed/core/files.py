"""Files that get their name only once they are complete, and never overwrite others by accident."""

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
    """Open a file to read its bytes. OSError if it cannot be read or is a pipe or a device, which may never end."""
    # Non-blocking, because opening a pipe would wait for its writer. The mode is read from the open file, because the
    # path may become another file after a question about it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device", os.fspath(path))


def read_text_file(path: str | os.PathLike[str]) -> str:
    """Read a text file in UTF-8, without a byte order mark. OSError as in ``open_file``; ValueError for other bytes."""
    with open_file(path) as file:
        return file.read().decode("utf-8-sig")


@contextmanager
def atomic_file(path: Path, rename: Callable[[Path, Path], None] = os.replace) -> Iterator[Path]:
    """Yield the path of a new, empty file in the folder of ``path``; rename it to ``path`` on success.

    On failure the new file is removed and ``path`` stays as it was. OSError where the folder or disk refuses.
    """
    # In the same folder, because files can be renamed only within one file system.
    part = path.with_name(f".mpifed-{uuid.uuid4().hex[:12]}")
    part.touch(exist_ok=False)
    try:
        yield part
        rename(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replace_file(path: str | os.PathLike[str], force: bool) -> Iterator[Path]:
    """Yield a new file as ``atomic_file`` does, for a file named by the user; only ``force`` replaces an existing one.

    A link to a file stands for that file. UserError if the file exists and ``force`` is not given, even if it was
    created meanwhile, or if it cannot be written; RunError if the disk is full or broken.
    """
    name = os.fspath(path)
    target = check_target(name, force)
    try:
        with atomic_file(target, os.replace if force else rename_unless_taken) as part:
            yield part
    except OSError as error:
        raise write_error(name, error) from None


def write_error(name: str, error: OSError) -> UserError | RunError:
    """Return the exception for a file that cannot be written: a full or broken disk is no mistake of the user."""
    cls = RunError if error.errno in NO_ROOM else UserError
    return cls(f"{name} cannot be written: {reason(error)}")


def check_target(name: str, force: bool) -> Path:
    """Return the file that ``name`` stands for, with links followed; UserError if it must not be written."""
    if not name:
        raise UserError("-o '' is wrong: a result file needs a name")
    try:
        target = Path(os.path.realpath(name))
        if target.exists():
            if not target.is_file():
                raise UserError(f"{name} is not a file: say -o for another name")
            if not force:
                raise UserError(EXISTS.format(name))
            if is_being_written(target):
                raise UserError(f"{name} is being written by another run: say -o for another name")
        elif os.path.islink(name):
            raise UserError(f"{name} is a link to {os.readlink(name)}, which does not exist: say -o for another name")
        elif not target.parent.is_dir():
            raise UserError(f"{name} cannot be written: there is no folder {os.path.dirname(name)}")
    except (OSError, ValueError) as error:
        raise UserError(f"{name} cannot be written: {reason(error)}") from None
    return target


def lock_for_writing(handle: int) -> None:
    """Lock an open file as one that is being written, if the file system has locks; others may still read it."""
    # HDF5 locks each file that it opens by flock, shared to read and exclusive to write: a shared lock lets its readers
    # in and keeps its writers out. A lock of fcntl says that this is a writer. It belongs to the open file and not to
    # the process, which would lose it by closing the file elsewhere.
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        shared_or_exclusive = fcntl.LOCK_SH
    except (AttributeError, OSError):  # no Linux
        shared_or_exclusive = fcntl.LOCK_EX
    with suppress(OSError):
        fcntl.flock(handle, shared_or_exclusive | fcntl.LOCK_NB)


def check_name_length(name: str, added: int) -> None:
    """Raise UserError if a name has no room for ``added`` more bytes, those of the longest name derived from it."""
    target = os.path.realpath(name)
    try:
        maximum = os.pathconf(os.path.dirname(target), "PC_NAME_MAX") - added
    except (OSError, ValueError):
        return  # no such folder, which writing reports, or no such limit
    if len(os.fsencode(os.path.basename(target))) > maximum:
        raise UserError(f"-o {name} is wrong: the name of a result has at most {maximum} bytes here")


def is_being_written(path: Path) -> bool:
    """Return whether a process has the file open to write: a run of mpifed, or a program with HDF5."""
    with open_file(path) as file:
        for locked in (fcntl.lockf, fcntl.flock):
            try:
                locked(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                pass  # a file system without locks
    return False


def rename_unless_taken(part: Path, target: Path) -> None:
    """Rename unless another file has the name: a hard link reserves it or, without hard links, an empty file."""
    # os.replace alone would overwrite a file that another run has made since the check.
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


def claim_name(names: Iterable[str]) -> str:
    """Create an empty file under the first free name, so that no other process takes it, and return that name.

    UserError if no file can be created, RunError if the disk is full.
    """
    for name in names:
        try:
            Path(name).touch(exist_ok=False)
            return name
        except FileExistsError:
            continue
        except OSError as error:
            raise write_error(name, error) from None
    raise ValueError("there is no name")


def release_name(name: str) -> None:
    """Remove the file of ``claim_name`` if it is still empty."""
    with suppress(OSError):
        if not os.path.getsize(name):
            os.unlink(name)


def sync_to_disk(path: str | os.PathLike[str]) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
