"""Tables of the LIBSVM collection with two classes: a9a, w8a, phishing and mushrooms."""

from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.data.base import Clients, Dataset
from mpifed.data.download import find
from mpifed.data.formats.arrays import read_samples
from mpifed.data.formats.on_disk import reading
from mpifed.data.formats.svm import read_svm
from mpifed.data.pool import DenseRows, Pooled

Sparse = Annotated[bool, Meta(description="keep X as CSR; false: dense rows")]


class LibsvmTable(Pooled):
    """A table of two classes in LIBSVM's text format, plain, .gz or .bz2; the smaller label becomes 0, the larger 1."""

    objective = "logistic"

    clients: Clients = 142
    ones: Annotated[bool, Meta(description="append a column of ones: the last parameter is an intercept")] = False
    sparse: Sparse = True

    def locate(self) -> list[Path]:
        name = self.label()
        return [find(name, name, f"{name}.gz", f"{name}.bz2", shared="libsvm")]

    def load(self, seed: int, dtype: str) -> Dataset:
        (path,) = self.locate()
        with reading(path, "LIBSVM"):
            X, y = read_samples(read_svm(path, None), path, "")
        if self.ones:
            X = sp.hstack([X, np.ones((len(y), 1))], format="csr")
        classes = np.unique(y, return_inverse=True)[1]
        return self.deal(X if self.sparse else DenseRows(X), classes, seed, dtype, str(path))


class A9a(LibsvmTable, tag="a9a"):
    """Adult income as 123 binary features, 32,561 samples (UCI; LIBSVM), 11 % of them nonzero; labels −1 and 1.

    Labels become 0 and 1. Files: a9a, a9a.gz or a9a.bz2, in the folder a9a or libsvm. Default partition: iid.
    """


class W8a(LibsvmTable, tag="w8a"):
    """Web pages as 300 binary features, 49,749 samples (Platt; LIBSVM), 4 % of them nonzero; labels −1 and 1.

    Labels become 0 and 1. Files: w8a, w8a.gz or w8a.bz2, in the folder w8a or libsvm. Default partition: iid.
    """


class Phishing(LibsvmTable, tag="phishing"):
    """Phishing websites as 68 features, 11,055 samples of unit length (UCI; LIBSVM), 44 % of them nonzero.

    Labels are 0 and 1. Files: phishing, phishing.gz or phishing.bz2, in the folder phishing or libsvm. Dense rows by
    default. Default partition: iid.
    """

    sparse: Sparse = False


class Mushrooms(LibsvmTable, tag="mushrooms"):
    """Mushrooms as 112 binary features, 8,124 samples (UCI; LIBSVM), 19 % of them nonzero; labels 1 and 2.

    Labels become 0 and 1. Files: mushrooms, mushrooms.gz or mushrooms.bz2, in the folder mushrooms or libsvm. Default
    partition: iid.
    """
