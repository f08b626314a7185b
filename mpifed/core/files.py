"""The file that is going to hold a result: never one that exists, unless that is what the user wants, and complete."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpifed.core.errors import UserError, reason

EXISTS = "{} exists; say --force to overwrite it or -o for another name"


def claim(path: str | os.PathLike[str], force: bool) -> tuple[Path, Path]:
    """The file that is meant and a new, empty file to write beside it.

    A link to a file stands for that file; one to nothing is refused. Raises UserError where the file exists and
    ``force`` is not given, and where it cannot be written.
    """
    name = os.fspath(path)
    if not name:
        raise UserError("-o '' is wrong: a result file needs a name")
    try:
        target = Path(os.path.realpath(name))
        if target.exists():
            if not target.is_file():
                raise UserError(f"{name} is no file: say -o for another name")
            if not force:
                raise UserError(EXISTS.format(name))
            if being_written(target):
                raise UserError(f"{name} is being written by another run: say -o for another name")
        elif os.path.islink(name):
            raise UserError(f"{name} is a link to {os.readlink(name)}, which is not there: say -o for another name")
        elif not target.parent.is_dir():
            raise UserError(f"{name} cannot be written: there is no folder {os.path.dirname(name)}")
        place = target.with_name(f".mpifed-{uuid.uuid4().hex[:12]}")
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise UserError(f"{name} cannot be written: {reason(error)}") from None
    return target, place


def being_written(path: Path) -> bool:
    """Whether a process holds the lock that HDF5 takes while it writes."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # a file system without locks
    return False


@contextmanager
def replacing(path: str | os.PathLike[str], force: bool) -> Iterator[Path]:
    """A file to write, which takes the place of ``path`` when it is complete and is gone when that fails."""
    target, place = claim(path, force)
    try:
        yield place
        publish(place, target, force)
    except OSError as error:
        raise UserError(f"{os.fspath(path)} cannot be written: {reason(error)}") from None
    finally:
        place.unlink(missing_ok=True)


def publish(place: Path, target: Path, force: bool) -> None:
    """Give a file its name. UserError where the name has been taken meanwhile, unless ``force`` is given."""
    try:
        if not force:
            take(place, target)
    except FileExistsError:
        raise UserError(EXISTS.format(target)) from None
    os.replace(place, target)


def take(place: Path, target: Path) -> None:
    """A second name for a file, or, on a file system without hard links, an empty file of that name. FileExistsError."""
    try:
        os.link(place, target)
    except FileExistsError:
        raise
    except OSError:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
