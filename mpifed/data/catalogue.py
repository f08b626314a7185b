"""Public data sets by name: read from the folder MPIFED_DATA, downloaded once by ``mpifed data get``."""
from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp
from msgspec import Meta

from mpifed.component import UserError, unknown
from mpifed.data.clients import Array, Data, Dataset, Matrix
from mpifed.data.files import read_mat, samples
from mpifed.data.partition import Partition, Sizes
from mpifed.data.pool import Pool, check_finite, unit_columns
from mpifed.data.stored import reading
from mpifed.rng import stream


class Source(NamedTuple):
    """Where a file of a data set is published; of a zip archive only the member ``file`` is taken."""

    url: str
    sha256: str | None  # of what the URL gives; None: unknown, nothing to check
    file: str


SOURCES = {
    "qot": [
        Source("https://archive.ics.uci.edu/static/public/508/qsar+oral+toxicity.zip", None, "qsar_oral_toxicity.csv"),
    ],
}


def fetch(name: str, to: str | Path) -> list[Path]:
    """Download the files of the data set ``name`` to the folder ``to``/name and return their paths.

    A file appears whole and checked, or not at all; one that is there already is left alone. UserError for unknown
    names, for failed downloads and for wrong check sums.
    """
    if name not in SOURCES:
        unknown("data set", name, SOURCES)
    folder = Path(to).expanduser() / name
    paths = []
    for source in SOURCES[name]:
        path = folder / source.file
        if not path.exists():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    os.replace(download(source, Path(place)), path)
            except (OSError, zipfile.BadZipFile, KeyError) as error:
                raise UserError(f"{name} cannot be brought from {source.url} to {path}: {error}") from error
        paths.append(path)
    return paths


def download(source: Source, place: Path) -> Path:
    """The file of ``source`` in the folder ``place``, its check sum compared."""
    whole, wanted = place / "download", place / "file"
    digest = hashlib.sha256()
    with urllib.request.urlopen(source.url, timeout=60) as reply, whole.open("wb") as out:
        while block := reply.read(1 << 20):
            digest.update(block)
            out.write(block)
    if source.sha256 not in (None, digest.hexdigest()):
        raise UserError(f"what {source.url} gives has the SHA-256 {digest.hexdigest()}: it should be {source.sha256}")
    if not zipfile.is_zipfile(whole):
        return whole
    with zipfile.ZipFile(whole) as archive, archive.open(source.file) as member, wanted.open("wb") as out:
        shutil.copyfileobj(member, out)  # its path in the archive plays no part in where it lands
    return wanted


def find(name: str, *files: str, hint: str = "") -> Path:
    """The first of ``files`` that is in $MPIFED_DATA/name, or a UserError that says what to do."""
    root = os.environ.get("MPIFED_DATA", "")
    for file in files if root else ():
        if (path := Path(root).expanduser() / name / file).is_file():
            return path
    place = Path(root) / name if root else f"$MPIFED_DATA/{name}, which is not set"
    hint = hint or f"python -m mpifed data get {name} --to DIR downloads it, then set MPIFED_DATA=DIR"
    raise UserError(f"data = \"{name}\" finds no {' or '.join(files)} in {place}: {hint}")


class UnitColumns(Data):
    """A table whose columns are scaled to unit Euclidean norm and whose rows are then dealt to clients (errata)."""

    objective = "logistic"

    partition: Partition | None = None
    sparse: Annotated[bool, Meta(description="keep X as CSR in place of dense rows")] = False

    def read(self) -> tuple[Path, Matrix, Array]:
        """The path of the file, X (d, n) as it is there, y (d,) of 0 and 1."""
        raise NotImplementedError

    def load(self, seed: int, dtype: str) -> Dataset:
        path, X, y = self.read()
        X, y = samples({"X": X, "y": y}, path, "")
        check_finite(X, range(len(y)), f"X of {path}")  # one NaN would make a whole column of them
        X = unit_columns(X.astype(np.float64, copy=False))
        rng = stream(seed if self.seed is None else self.seed, "partition")
        order, sizes = (self.partition or Sizes(least=0.025)).split(y, self.clients, rng)
        return Pool(X, y, order, sizes, dtype, str(path), sparse=self.sparse)


class Qot(UnitColumns, tag="qot"):
    """QSAR oral toxicity, 8992 samples of 1024 binary features (UCI; Example V.2 of fedgia, 5.2 of fedadmm).

    Read from toxicity.mat with toxicityclass.mat, or from UCI's qsar_oral_toxicity.csv. Default partition: random cut
    points with min d_i > 0.025·d/m.
    """

    def read(self) -> tuple[Path, Matrix, Array]:
        path = find("qot", "toxicity.mat", "qsar_oral_toxicity.csv")
        with reading(path, "the data set qot"):
            if path.suffix == ".csv":
                with path.open("rb") as file:
                    table = np.loadtxt(zero_one(file), delimiter=";", dtype=np.int8, ndmin=2)
                return path, sp.csr_array(table[:, :-1].astype(np.float64)), table[:, -1]
            labels = read_mat(find("qot", "toxicityclass.mat"))["y"].ravel()
            return path, sp.csr_array(read_mat(path)["X"]), np.where(labels == -1, 0, labels)


def zero_one(file: IO[bytes]) -> Iterator[bytes]:
    """UCI's lines with the label as a number: positive is 1."""
    return (line.replace(b"positive", b"1").replace(b"negative", b"0") for line in file)


class Sct(UnitColumns, tag="sct"):
    """Santander customer transaction, 200,000 samples of 200 features (Kaggle; Example V.2 of fedgia, 5.2 of fedadmm).

    Read from Kaggle's train.csv, whose columns are ID_code, target, var_0 … var_199.
    """

    def read(self) -> tuple[Path, Matrix, Array]:
        path = find("sct", "train.csv", hint="download that of kaggle.com/c/santander-customer-transaction-prediction "
                                             "to DIR/sct, then set MPIFED_DATA=DIR")
        with reading(path, "the data set sct"), path.open("rb") as file:
            head = file.readline().decode("utf-8-sig").strip().split(",")
            if head[:2] != ["ID_code", "target"]:
                raise UserError(f"{path} is not Kaggle's train.csv: its columns must be ID_code, target, var_0 …")
            table = np.loadtxt(file, delimiter=",", usecols=range(1, len(head)), ndmin=2)
        return path, table[:, 1:], table[:, 0]
