"""Download of public data sets, with their checksums."""

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.files import atomic_file
from mpifed.data.formats.on_disk import DAMAGE
from mpifed.data.public import PUBLIC, Download

LARGEST = 1 << 32  # bytes; no public data set here is larger
MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zip": b"PK"}  # a server may send a web page instead
FAILURES = (http.client.HTTPException, *DAMAGE)  # raised by a download or by a damaged archive


def fetch(name: str, to: str | Path) -> dict[Path, str]:
    """Download the files of the data set ``name`` to the folder ``to``/name; return a note on each checksum.

    A file appears only when it is complete and checked; existing files are not touched. Raises UserError for unknown
    names, for data sets that need a login, for failed downloads and for wrong checksums.
    """
    if name not in PUBLIC:
        raise_unknown("data set", name, PUBLIC)
    if PUBLIC[name].login:
        raise UserError(f"{name} cannot be downloaded without a login: {PUBLIC[name].login}")
    folder = Path(os.path.expanduser(to)) / name
    notes: dict[Path, str] = {}
    for source in PUBLIC[name].downloads:
        paths = [folder / file for file in source.files]
        missing = [path for path in paths if not path.is_file()]
        try:
            note = fetch_source(source, folder, missing) if missing else ""
        except FAILURES as error:
            raise UserError(
                f"{name} cannot be downloaded from {source.url} to {missing[0]}: {first_line(error)}"
            ) from None
        notes |= {path: note if path in missing else "exists already" for path in paths}
    return notes


def first_line(error: Any) -> str:
    if isinstance(error, urllib.error.HTTPError):
        # An HTTPError is also the reply of the server, with an open connection.
        error.close()
    inner = error.reason if type(error) is urllib.error.URLError else error
    message = str(getattr(inner, "strerror", None) or inner).strip() or type(inner).__name__
    return message.splitlines()[0]


def fetch_source(source: Download, folder: Path, missing: list[Path]) -> str:
    """Download a source and put its ``missing`` files in ``folder``; return a note on the checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as content:
        download(source.url, content)
        content.seek(0)
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        if source.sha256 not in (None, digest):
            raise UserError(
                f"the file from {source.url} has the SHA-256 {digest}: it should be {source.sha256}, so it was deleted"
            )
        content.seek(0)
        # All files get their names when the stack ends. A damaged archive leaves none, so that a later call does not
        # take half of a data set for all of it.
        with ExitStack() as files:
            archive = files.enter_context(zipfile.ZipFile(content)) if source.url.endswith(".zip") else None
            for path in missing:
                part = files.enter_context(atomic_file(path))
                member: IO[bytes] = files.enter_context(archive.open(path.name)) if archive else content
                with part.open("wb") as out:
                    copy(member, out, f"{path.name} in {source.url}")
    return f"SHA-256 {digest}" + (", as published" if source.sha256 else "; none is published to compare it with")


def download(url: str, out: IO[bytes]) -> None:
    with urllib.request.urlopen(url, timeout=60) as reply:
        length = copy(reply, out, url)
        promised = reply.headers.get("Content-Length")
    # urllib does not report that a connection broke off.
    if promised and length != int(promised):
        raise OSError(f"the connection broke off after {length} of {promised} bytes")
    magic = MAGIC.get(Path(url).suffix, b"")
    out.seek(0)
    if out.read(len(magic)) != magic:
        raise OSError(f"the server did not send a {Path(url).suffix} file")


def copy(source: IO[bytes] | Any, out: IO[bytes], name: str) -> int:
    # Counted while unpacking, because an archive of some kB can hold more than any disk.
    length = 0
    while block := source.read(1 << 20):
        length += out.write(block)
        if length > LARGEST:
            raise UserError(f"{name} has more than {LARGEST >> 30} GiB: it is not the data set")
    return length
