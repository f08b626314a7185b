"""Public tables, downloaded once by ``mpifed data get``: of UCI, Kaggle and the LIBSVM collection."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports, supporting
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import ClientCount, Dataset
from mpifed.data.formats.arrays import read_samples
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.on_disk import reading
from mpifed.data.formats.svm import infer_indices, read_svm
from mpifed.data.partition import Partition, Sizes
from mpifed.data.pool import LazyMatrix, PooledData, check_finite
from mpifed.data.public import find_data_file, find_files

KeepCsr = Annotated[bool, Meta(description="keep X as CSR; false: dense rows")]


class PublicTable(PooledData):
    """Base of public tables, whose files ``data.public`` lists."""

    def locate(self) -> list[Path]:
        return find_files(self.label())


class UnitColumns(PublicTable):
    """Base of tables whose columns are scaled to unit Euclidean norm before rows are divided among clients (errata)."""

    options = supporting("sparse")

    objective = "logistic"
    common = "columns are scaled to unit norm over the samples of all clients"
    default_partition: ClassVar[Partition] = Sizes(least=0.025)

    sparse: Annotated[bool, Meta(description="keep X as CSR instead of dense rows")] = False

    def read(self) -> tuple[Path, SampleMatrix, Array]:
        """Return the path of the file, X (d, n) before scaling, and y (d,) of 0 and 1."""
        raise NotImplementedError

    def load(self, seed: int, dtype: str) -> Dataset:
        path, X, y = self.read()
        X, y = read_samples({"X": X, "y": y}, path, "")
        # Checked before scaling, which would spread a NaN to every row of its column.
        check_finite(X, range(len(y)), f"X of {path}")
        X = unit_columns(X.astype(np.float64, copy=False))
        if self.sparse:
            X = sp.csr_array(X)
        elif sp.issparse(X):
            X = LazyMatrix(X, sp.csr_array.toarray)
        return self.deal(X, y, seed, dtype, str(path))


def unit_columns(X: SampleMatrix) -> SampleMatrix:
    """Divide each column of X by its Euclidean norm; zero columns stay 0, no centring (errata, qot and adult)."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.einsum("ij,ij->j", X, X))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return (X @ sp.diags_array(scale)).tocsr() if sp.issparse(X) else X * scale


class Qot(UnitColumns, tag="qot"):
    """QSAR oral toxicity, 8992 samples of 1024 binary features (UCI; Example V.2 of fedgia, 5.2 of fedadmm).

    Files: toxicity.mat with toxicityclass.mat, or UCI's qsar_oral_toxicity.csv. Default partition: random cut points
    with min d_i > 0.025·d/m.
    Sources: FedGiA, 2022, arXiv 2205.01438; FedADMM, 2022, arXiv 2204.10607.
    """

    # Columns are scaled over all clients, which ``common`` says: a guarantee of privacy is for the samples after that.
    supports = Supports.EVERYTHING

    def read(self) -> tuple[Path, SampleMatrix, Array]:
        path, *classes = self.locate()
        with reading(path, "the data set qot"):
            if path.suffix == ".csv":
                with path.open("rb") as file:
                    lines = (line.replace(b"positive", b"1").replace(b"negative", b"0") for line in file)
                    table = np.loadtxt(lines, delimiter=";", dtype=np.int8, ndmin=2)
                return path, sp.csr_array(table[:, :-1].astype(np.float64)), table[:, -1]
            labels = read_mat(classes[0])["y"].ravel()
            return path, sp.csr_array(read_mat(path)["X"]), np.where(labels == -1, 0, labels)


class Sct(UnitColumns, tag="sct"):
    """Santander customer transaction, 200,000 samples of 200 features (Kaggle; Example V.2 of fedgia, 5.2 of fedadmm).

    File: Kaggle's train.csv with the columns ID_code, target, var_0 … var_199.
    Sources: FedGiA, 2022, arXiv 2205.01438; FedADMM, 2022, arXiv 2204.10607.
    """

    # As for qot: ``common`` says that columns are scaled over all clients.
    supports = Supports.EVERYTHING

    def read(self) -> tuple[Path, SampleMatrix, Array]:
        (path,) = self.locate()
        with reading(path, "the data set sct"), path.open("rb") as file:
            head = file.readline().decode("utf-8-sig").strip().split(",")
            if head[:2] != ["ID_code", "target"]:
                raise UserError(f"{path} is not Kaggle's train.csv: its columns must be ID_code, target, var_0 …")
            table = np.loadtxt(file, delimiter=",", usecols=range(1, len(head)), ndmin=2)
        return path, table[:, 1:], table[:, 0]


class Adult(UnitColumns, tag="adult"):
    """Adult income, 45,222 samples of 14 features, label 1 where income is over 50,000 (UCI; fedepm section VII.A).

    Files: adult.mat with adultclass.mat, or UCI's adult.test and adult.data, prepared as in the paper: persons with a
    missing value are dropped, words become integers, columns are scaled to unit norm (no centring: errata).
    Default partition: random cut points with min d_i > 0.01·d/m.
    Source: FedEPM, 2022, arXiv 2208.11231.
    """

    # As for qot: ``common`` says that columns are scaled over all clients.
    supports = Supports.EVERYTHING

    default_partition: ClassVar[Partition] = Sizes(least=0.01)

    clients: ClientCount = 50

    def read(self) -> tuple[Path, SampleMatrix, Array]:
        path, second = self.locate()
        with reading(path, "the data set adult"):
            if path.suffix == ".mat":
                return path, read_mat(path)["X"], read_mat(second)["y"].ravel()
            table = np.array([*read_persons(second), *read_persons(path)])
            # Not ==, because words in adult.test end with a full stop. Words are numbered in alphabetical order, as in
            # the paper's own file.
            labels = np.char.startswith(table[:, -1], ">50K")
            columns = [
                column.astype(np.int64) if np.char.isdigit(column).all() else np.unique(column, return_inverse=True)[1]
                for column in table[:, :-1].T
            ]
            return path, np.column_stack(columns), labels.astype(np.int64)


def read_persons(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each line without missing values; UserError for a line that has not 15 of them."""
    with path.open(encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) != 15 and line.strip() and not line.startswith("|"):
                raise UserError(f"{path}, line {number}: {len(cells)} values: it must have 15")
            if len(cells) == 15 and "?" not in cells:
                yield cells


class SvmTable(PublicTable):
    """Base of tables in LIBSVM's format, plain, .gz or .bz2; labels are numbered 0 … C-1 in increasing order."""

    def load(self, seed: int, dtype: str) -> Dataset:
        (path,) = self.locate()
        with reading(path, "LIBSVM"):
            X, y = read_samples(read_svm(path, None), path, "")
        dataset = self.deal(self.arrange(X), np.unique(y, return_inverse=True)[1], seed, dtype, str(path))
        dataset.inferred = infer_indices()
        return dataset

    def arrange(self, X: SampleMatrix) -> Any:
        """Return X (d, n) as clients have it."""
        return X


class Rcv1(SvmTable, tag="rcv1"):
    """Reuters news, 20,242 samples of 47,236 features, sparse: rcv1_train.binary of LIBSVM (feddcd section 8.1).

    ``labels = "multiclass"`` reads rcv1_train.multiclass instead (15,564 samples, 53 classes). Labels are numbered
    0 … C-1 in increasing order. X is CSR. Default partition: iid, among 100 clients as in the paper.
    Source: FedDCD, 2022, arXiv 2201.11183.
    """

    # Samples as they are in the file; scaled before it was published.
    supports = Supports.EVERYTHING
    options = supporting("labels")

    clients: ClientCount = 100
    labels: Annotated[Literal["binary", "multiclass"], Meta(description="which of the two LIBSVM files")] = "binary"

    def locate(self) -> list[Path]:
        return [find_data_file("rcv1", f"rcv1_train.{self.labels}", f"rcv1_train.{self.labels}.bz2")]


class LibsvmTable(SvmTable):
    """Base of tables of two classes in LIBSVM's format, plain, .gz, .bz2; the smaller label becomes 0, the other 1."""

    options = supporting("ones", "sparse")

    objective = "logistic"

    clients: ClientCount = 142
    ones: Annotated[bool, Meta(description="append a column of ones: the last parameter is an intercept")] = False
    sparse: KeepCsr = True

    def load(self, seed: int, dtype: str) -> Dataset:
        dataset = super().load(seed, dtype)
        dataset.intercepts = int(self.ones)
        return dataset

    def arrange(self, X: SampleMatrix) -> Any:
        if self.ones:
            X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
        return X if self.sparse else LazyMatrix(X, sp.csr_array.toarray)


class A9a(LibsvmTable, tag="a9a"):
    """Adult income as 123 binary features, 32,561 samples (UCI; LIBSVM), 11 % of them nonzero; labels −1 and 1.

    Labels become 0 and 1. Files: a9a, a9a.gz or a9a.bz2, in the folder a9a or libsvm. Default partition: iid.
    """

    # Samples as they are in the file.
    supports = Supports.EVERYTHING


class W8a(LibsvmTable, tag="w8a"):
    """Web pages as 300 binary features, 49,749 samples (Platt; LIBSVM), 4 % of them nonzero; labels −1 and 1.

    Labels become 0 and 1. Files: w8a, w8a.gz or w8a.bz2, in the folder w8a or libsvm. Default partition: iid.
    """

    # Samples as they are in the file.
    supports = Supports.EVERYTHING


class Phishing(LibsvmTable, tag="phishing"):
    """Phishing websites as 68 features, 11,055 samples of unit length (UCI; LIBSVM), 44 % of them nonzero.

    Labels are 0 and 1. Files: phishing, phishing.gz or phishing.bz2, in the folder phishing or libsvm. Dense rows by
    default. Default partition: iid.
    """

    # Samples as they are in the file.
    supports = Supports.EVERYTHING

    sparse: KeepCsr = False


class Mushrooms(LibsvmTable, tag="mushrooms"):
    """Mushrooms as 112 binary features, 8,124 samples (UCI; LIBSVM), 19 % of them nonzero; labels 1 and 2.

    Labels become 0 and 1. Files: mushrooms, mushrooms.gz or mushrooms.bz2, in the folder mushrooms or libsvm. Default
    partition: iid.
    """

    # Samples as they are in the file.
    supports = Supports.EVERYTHING
