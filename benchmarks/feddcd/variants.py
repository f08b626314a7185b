"""What section 8.1 of FedDCD and its released program use: LIBSVM's MNIST, and networks under dual methods."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.algorithms import accfeddcd, feddcd
from mpifed.algorithms.bases.dual_method import DualState
from mpifed.data.partition import even_edges
from mpifed.data.sources.public_images import IdxImages, Mnist, scale_pixels
from mpifed.extend import Array, Dataset, Federation, Local, Pool, stream
from mpifed.kernels.blocks import Block
from mpifed.networks.mlp import MLP
from mpifed.problems.quadratic import Quadratic


class MnistScale(IdxImages):
    """MNIST with pixels x/255, as in LIBSVM's mnist.scale, the data of section 8.1."""

    scale = (0.0, 1.0)

    def parts(self) -> list[str]:
        return Mnist(part=self.part).parts()

    def read(self, part: str) -> tuple[Path, Array, Array]:
        return Mnist(part=self.part).read(part)


class MnistHalves(MnistScale):
    """The 60,000 training images divided among the clients by ``partition``; each tests on a part of the other 10,000.

    So the pooled accuracy is that on MNIST's test set, whatever the partition.
    """

    def parts(self) -> list[str]:
        return ["train", "t10k"]

    def load(self, seed: int, dtype: str) -> Dataset:
        (path, X, y), (_, X_test, y_test) = (self.read(part) for part in self.parts())
        rule = self.partition or self.default_partition
        order, sizes = rule.split(y, self.clients, stream(seed if self.seed is None else self.seed, "partition"))
        tests = np.diff(even_edges(len(y_test), self.clients))
        test = scale_pixels(X_test, *self.scale), y_test, None, tests
        pool = Pool(scale_pixels(X, *self.scale), y, order, sizes, dtype, test=test)
        pool.source, pool.division = str(path), rule.describe()
        return pool


class Network(MLP):
    """An MLP that dual methods accept: it claims strong convexity α = lam, although its f_i are not convex.

    No Lipschitz constant of ∇f_i is known; β = 1 is a placeholder, which no option used here needs.
    Source: section 8.1; the released program does the same.
    """

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.lam)

    def lipschitz(self, block: Block) -> Array:
        return np.ones(len(block))


class FromModel:
    """A dual method whose clients solve (1) starting from the server's model instead of their own last w_i.

    Source: the released program does so for networks (src/training.jl, synchronize!); (7) says w_i^(t−1).
    """

    def select(self, fed: Federation, server: DualState) -> Array | None:
        selected: Array | None = super().select(fed, server)  # type: ignore[misc]
        fed.call(self.restart, server.x, to=selected)
        return selected

    def restart(self, f: Local, client: Any, x: Array) -> tuple[Any, None]:
        """Set w_i = x."""
        return client._replace(w=np.tile(x, (len(f), 1))), None


class FedDCD(FromModel, feddcd.FedDCD):
    """FedDCD from the server's model."""


class AccFedDCD(FromModel, accfeddcd.AccFedDCD):
    """AccFedDCD from the server's model, in each of the two exchanges of a round."""


class QuadraticWithBound(Quadratic):
    """Quadratic functions of which the algorithm knows only a lower bound α of their strong convexity."""

    alpha: Annotated[float, Meta(gt=0, description="α, at most the least eigenvalue of any Q_i")] = 1.0

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.alpha)
