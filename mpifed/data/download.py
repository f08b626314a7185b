"""Where public data sets come from and where they lie: downloads, and files in the folder MPIFED_DATA."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

from mpifed.core.errors import UserError, unknown

LARGEST = 1 << 32  # bytes; a server or an archive that gives more is not the one that was meant
MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zip": b"PK"}  # servers answer with a web page where a file is gone


class Source(NamedTuple):
    """Where files of a data set are published; of a zip archive only the members ``files`` are taken."""

    url: str
    sha256: str | None  # of what the URL gives; None: nobody publishes it
    files: tuple[str, ...]


class Fetched(NamedTuple):
    """A file of a data set and what is known of it."""

    path: Path
    note: str

    def __str__(self) -> str:
        return f"{self.path} ({self.note})"


def idx(base: str, *sums: str) -> list[Source]:
    """The four files of MNIST and of sets made after it."""
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return [Source(base + name, digest, (name,)) for name, digest in zip(names, sums, strict=True)]


UCI, LIBSVM = "https://archive.ics.uci.edu/static/public/", "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
SOURCES = {
    "qot": [Source(UCI + "508/qsar+oral+toxicity.zip", None, ("qsar_oral_toxicity.csv",))],
    "adult": [
        Source(
            UCI + "2/adult.zip",
            "7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb",
            ("adult.data", "adult.test"),
        )
    ],
    "mnist": idx(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "fmnist": idx(
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
}
BY_HAND = {  # sets behind a login
    "sct": "download train.csv of kaggle.com/c/santander-customer-transaction-prediction to DIR/sct, "
    "then set MPIFED_DATA=DIR",
    "medical-mnist": "download kaggle.com/datasets/andrewmvd/medical-mnist and unpack it so that its class folders "
    "(AbdomenCT, BreastMRI …) are in DIR/medical-mnist, then set MPIFED_DATA=DIR",
}


def fetch(name: str, to: str | Path) -> list[Fetched]:
    """Download the files of the data set ``name`` to the folder ``to``/name.

    A file appears whole and checked, or not at all; one that is there already is left alone. UserError for unknown
    names, for sets that are to be had by hand only, for failed downloads and for wrong check sums.
    """
    if name in BY_HAND:
        raise UserError(f"{name} needs a login where it is published: {BY_HAND[name]}")
    if name not in SOURCES:
        unknown("data set", name, [*SOURCES, *BY_HAND])
    folder, done = Path(os.path.expanduser(to)) / name, []
    for source in SOURCES[name]:
        paths = [folder / file for file in source.files]
        missing = [path for path in paths if not path.is_file()]
        try:
            note = bring(source, folder, missing) if missing else ""
        except (
            OSError,
            http.client.HTTPException,
            zipfile.BadZipFile,
            zlib.error,
            KeyError,
            RuntimeError,
            ValueError,
        ) as error:
            raise UserError(f"{name} cannot be brought from {source.url} to {missing[0]}: {reason(error)}") from None
        done += [Fetched(path, note if path in missing else "was there already") for path in paths]
    return done


def reason(error: Any) -> str:
    """What an error says, on one line."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds the connection
    inner = error.reason if type(error) is urllib.error.URLError else error
    said = str(getattr(inner, "strerror", None) or inner).strip() or type(inner).__name__
    return said.splitlines()[0]


def bring(source: Source, folder: Path, wanted: list[Path]) -> str:
    """Put the ``wanted`` files of a source in ``folder``; what is known of their check sum."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        whole = Path(place) / "download"
        digest = download(source.url, whole)
        if source.sha256 not in (None, digest):
            raise UserError(
                f"what {source.url} gives has the SHA-256 {digest}: it should be {source.sha256}, so it was deleted"
            )
        if source.url.endswith(".zip"):
            with zipfile.ZipFile(whole) as archive:
                for path in wanted:  # its path in the archive plays no part in where it lands
                    with archive.open(path.name) as member, (Path(place) / path.name).open("wb") as out:
                        copy(member, out, f"{path.name} in {source.url}")
        else:
            os.replace(whole, Path(place) / wanted[0].name)
        for path in wanted:
            os.replace(Path(place) / path.name, path)
    return f"SHA-256 {digest}" + (", as it should be" if source.sha256 else "; none is published to compare it with")


def download(url: str, path: Path) -> str:
    """Write what ``url`` gives to ``path``; its SHA-256."""
    with urllib.request.urlopen(url, timeout=60) as reply, path.open("wb") as out:
        digest, length = copy(reply, out, url)
        promised = reply.headers.get("Content-Length")
    if promised and length != int(promised):
        raise OSError(f"the connection broke off after {length} of {promised} bytes")
    kind = MAGIC.get(Path(url).suffix, b"")
    with path.open("rb") as file:
        if file.read(len(kind)) != kind:
            raise OSError(f"the answer is no {Path(url).suffix} file")
    return digest


def copy(source: IO[bytes] | Any, out: IO[bytes], name: str) -> tuple[str, int]:
    """Copy a stream; the SHA-256 and the number of bytes."""
    digest, length = hashlib.sha256(), 0
    while block := source.read(1 << 20):
        digest.update(block)
        length += out.write(block)
        if length > LARGEST:
            raise UserError(f"{name} gives more than {LARGEST >> 30} GiB: that is not the data set")
    return digest.hexdigest(), length


def find(name: str, *files: str) -> Path:
    """The first of ``files`` that is in $MPIFED_DATA/name ("": the folder itself), or a UserError that says what to do."""
    root = os.environ.get("MPIFED_DATA", "")
    for file in files if root else ():
        path = Path(os.path.expanduser(root)) / name / file
        if os.path.isfile(path) or (not file and os.path.isdir(path)):
            return path
    place = Path(root) / name if root else f"$MPIFED_DATA/{name}, which is not set"
    hint = BY_HAND.get(name) or f"python -m mpifed data get {name} --to DIR downloads it, then set MPIFED_DATA=DIR"
    raise UserError(f'data = "{name}" finds no {" or ".join(files) or "images"} in {place}: {hint}')
