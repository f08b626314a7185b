"""Public data sets: their download, and the search for their files in the folder MPIFED_DATA."""

import hashlib
import http.client
import itertools
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.files import atomic_file
from mpifed.data.formats.on_disk import DAMAGE

LARGEST = 1 << 32  # bytes; no public data set here is larger
MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zip": b"PK"}  # a server may send a web page instead


class Source(NamedTuple):
    """A published file of a data set, or a zip archive of which only the members ``files`` are extracted."""

    url: str
    sha256: str | None  # of the download; None: none is published
    files: tuple[str, ...]


def idx_sources(base: str, *sums: str) -> list[Source]:
    """Return the sources, with checksums ``sums``, of the four files of MNIST or of a data set in the same form."""
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return [Source(base + name, digest, (name,)) for name, digest in zip(names, sums, strict=True)]


UCI = "https://archive.ics.uci.edu/static/public/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
ADULT = "7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb"
SOURCES = {
    "qot": [Source(UCI + "508/qsar+oral+toxicity.zip", None, ("qsar_oral_toxicity.csv",))],
    "adult": [Source(UCI + "2/adult.zip", ADULT, ("adult.data", "adult.test"))],
    "mnist": idx_sources(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "fmnist": idx_sources(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    "rcv1": [
        Source(f"{LIBSVM}{kind}/rcv1_train.{kind}.bz2", None, (f"rcv1_train.{kind}.bz2",))
        for kind in ("binary", "multiclass")
    ],
    **{name: [Source(f"{LIBSVM}binary/{name}", None, (name,))] for name in ("a9a", "w8a", "phishing", "mushrooms")},
}
MANUAL = {  # data sets behind a login: what to do
    "sct": "download train.csv of kaggle.com/c/santander-customer-transaction-prediction to DIR/sct, "
    "then set MPIFED_DATA=DIR",
    "medical-mnist": "download kaggle.com/datasets/andrewmvd/medical-mnist and unpack it so that its class folders "
    "(AbdomenCT, BreastMRI …) are in DIR/medical-mnist, then set MPIFED_DATA=DIR",
}

FAILURES = (http.client.HTTPException, *DAMAGE)  # raised by a download or by a damaged archive


def fetch(name: str, to: str | Path) -> dict[Path, str]:
    """Download the files of the data set ``name`` to the folder ``to``/name; return a note on each checksum.

    A file appears only when it is complete and checked; existing files are not touched. Raises UserError for unknown
    names, for data sets that need a login, for failed downloads and for wrong checksums.
    """
    if name in MANUAL:
        raise UserError(f"{name} cannot be downloaded without a login: {MANUAL[name]}")
    if name not in SOURCES:
        raise_unknown("data set", name, [*SOURCES, *MANUAL])
    folder = Path(os.path.expanduser(to)) / name
    notes: dict[Path, str] = {}
    for source in SOURCES[name]:
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


def fetch_source(source: Source, folder: Path, missing: list[Path]) -> str:
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


def find_data_file(name: str, *files: str, shared: str = "") -> Path:
    """Return the first of ``files`` that exists in $MPIFED_DATA/name ("": the folder itself); UserError if none does.

    ``shared``: a second folder in $MPIFED_DATA to look in, which holds the files of several sets.
    """
    root = os.environ.get("MPIFED_DATA", "")
    folders = [folder for folder in (name, shared) if root and folder]
    for folder, file in itertools.product(folders, files):
        path = Path(os.path.expanduser(root), folder, file)
        if os.path.isfile(path) or (not file and os.path.isdir(path)):
            return path
    where = Path(root) / name if root else f"$MPIFED_DATA/{name}, because MPIFED_DATA is not set"
    hint = MANUAL.get(name) or f"python -m mpifed data get {name} --to DIR downloads it, then set MPIFED_DATA=DIR"
    raise UserError(f'data = "{name}" finds no {" or ".join(files) or "images"} in {where}: {hint}')
