"""Federated data: who owns which samples."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.typing import Array, Matrix

# fields whose defaults differ from source to source
Clients = Annotated[int, Meta(ge=1, le=10**8, description="number of clients m")]
Test = Annotated[float, Meta(ge=0, lt=1, description="share of each client's samples that is kept for testing")]


class Dataset:
    """Samples divided among m clients; every rank knows the sizes and asks only for the rows of its own clients.

    ``m`` clients, ``n`` features, ``sizes`` (m,) training samples of each client, ``sizes_test`` (m,) or None,
    ``classes`` the number of classes (0 where labels are no classes), ``sparse`` whether rows come as CSR.
    """

    m: int
    n: int
    sizes: Array
    sizes_test: Array | None = None
    classes: int = 0
    sparse: bool = False

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        """X (rows, n) and y (rows,) of the clients lo <= i < hi, one client after the other."""
        raise NotImplementedError

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        """The same of their test samples."""
        raise NotImplementedError


class Data(Component):
    """A source of federated data."""

    choices: ClassVar[dict[str, str]] = {
        "linreg-noniid": "mpifed.data.sources.linreg_noniid:LinregNoniid",
        "synthetic": "mpifed.data.sources.synthetic:Synthetic",
        "gaussian": "mpifed.data.sources.gaussian:Gaussian",
        "images": "mpifed.data.sources.synthetic_images:ImageClasses",
        "quadratic": "mpifed.data.sources.quadratic:RandomQuadratic",
        "lower-bound": "mpifed.data.sources.lower_bound:LowerBound",
        "qot": "mpifed.data.sources.public_tables:Qot",
        "sct": "mpifed.data.sources.public_tables:Sct",
        "adult": "mpifed.data.sources.public_tables:Adult",
        "rcv1": "mpifed.data.sources.public_tables:Rcv1",
        "digits": "mpifed.data.sources.public_images:Digits",
        "mnist": "mpifed.data.sources.public_images:Mnist",
        "fmnist": "mpifed.data.sources.public_images:Fmnist",
        "medical-mnist": "mpifed.data.sources.public_images:MedicalMnist",
        "file": "mpifed.data.sources.file:File",
    }
    default: ClassVar[str] = "linreg-noniid"
    kind: ClassVar[str] = "data"
    objective: ClassVar[str] = "least-squares"  # the problem that goes with this data when none is named

    clients: Clients = 128
    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="seed of the data alone (default: the seed of the run)")
    ] = None

    @abstractmethod
    def load(self, seed: int, dtype: str) -> Dataset:
        """The data set, made or read in such a way that rows() gives the same numbers on every rank.

        Raises UserError for missing files and for values that cannot be.
        """
        raise NotImplementedError
