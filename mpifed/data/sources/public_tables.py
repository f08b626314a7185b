"""Public tables by name: read from the folder MPIFED_DATA, downloaded once by ``mpifed data get``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Clients, Dataset
from mpifed.data.download import fetch as fetch
from mpifed.data.download import find
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.on_disk import reading
from mpifed.data.formats.svm_csv import read_svm
from mpifed.data.partition import Partition, Sizes
from mpifed.data.pool import check_finite, unit_columns
from mpifed.data.sources.file import samples
from mpifed.data.split import Pooled


class UnitColumns(Pooled):
    """A table whose columns are scaled to unit Euclidean norm and whose rows are then dealt to clients (errata)."""

    objective = "logistic"
    usual: ClassVar[Partition] = Sizes(least=0.025)

    sparse: Annotated[bool, Meta(description="keep X as CSR in place of dense rows")] = False

    def read(self) -> tuple[Path, Matrix, Array]:
        """The path of the file, X (d, n) as it is there, y (d,) of 0 and 1."""
        raise NotImplementedError

    def load(self, seed: int, dtype: str) -> Dataset:
        path, X, y = self.read()
        X, y = samples({"X": X, "y": y}, path, "")
        check_finite(X, range(len(y)), f"X of {path}")  # one NaN would make a whole column of them
        X = unit_columns(X.astype(np.float64, copy=False))
        return self.deal(sp.csr_array(X) if self.sparse else X, y, seed, dtype, str(path), sparse=self.sparse)


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
        path = find("sct", "train.csv")
        with reading(path, "the data set sct"), path.open("rb") as file:
            head = file.readline().decode("utf-8-sig").strip().split(",")
            if head[:2] != ["ID_code", "target"]:
                raise UserError(f"{path} is not Kaggle's train.csv: its columns must be ID_code, target, var_0 …")
            table = np.loadtxt(file, delimiter=",", usecols=range(1, len(head)), ndmin=2)
        return path, table[:, 1:], table[:, 0]


class Adult(UnitColumns, tag="adult"):
    """Adult income, 45,222 samples of 14 features, label 1 where income is over 50,000 (UCI; fedepm section VII.A).

    Read from adult.mat with adultclass.mat, or made of UCI's adult.test and adult.data by the steps of the paper:
    persons with a missing value are left out, words become integers, columns get unit norm (no centring: errata).
    Default partition: random cut points with min d_i > 0.01·d/m.
    """

    usual: ClassVar[Partition] = Sizes(least=0.01)

    clients: Clients = 50

    def read(self) -> tuple[Path, Matrix, Array]:
        path = find("adult", "adult.mat", "adult.data")
        with reading(path, "the data set adult"):
            if path.suffix == ".mat":
                return path, read_mat(path)["X"], read_mat(find("adult", "adultclass.mat"))["y"].ravel()
            table = np.array([*persons(find("adult", "adult.test")), *persons(path)])
            labels = np.char.startswith(table[:, -1], ">50K")  # in adult.test a full stop follows
            return path, np.column_stack([integers(column) for column in table[:, :-1].T]), labels.astype(np.int64)


def persons(path: Path) -> Iterator[list[str]]:
    """The lines of 15 values without a missing one."""
    with path.open(encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) != 15 and line.strip() and not line.startswith("|"):
                raise UserError(f"{path}, line {number}: {len(cells)} values, and there must be 15")
            if len(cells) == 15 and "?" not in cells:
                yield cells


def integers(column: Array) -> Array:
    """A column of numbers as it is, one of words as their places (from 0) in the alphabetical order."""
    return column.astype(np.int64) if np.char.isdigit(column).all() else np.unique(column, return_inverse=True)[1]


class Rcv1(Pooled, tag="rcv1"):
    """Reuters news, 20,242 samples of 47,236 features, sparse: rcv1_train.binary of LIBSVM (feddcd section 8.1).

    Labels become 0 … C-1 in their order; ``labels = "multiclass"`` reads rcv1_train.multiclass in its place (15,564
    samples, 53 classes). X stays CSR. Default partition: iid, as in the paper, which has 100 clients.
    """

    clients: Clients = 100
    labels: Annotated[Literal["binary", "multiclass"], Meta(description="which of the two LIBSVM files")] = "binary"

    def load(self, seed: int, dtype: str) -> Dataset:
        path = find("rcv1", f"rcv1_train.{self.labels}", f"rcv1_train.{self.labels}.bz2")
        with reading(path, "LIBSVM"):
            X, y = samples(dict(zip("Xy", read_svm(path, None), strict=True)), path, "")
        return self.deal(X, np.unique(y, return_inverse=True)[1], seed, dtype, str(path))
