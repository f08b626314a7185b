"""Problems with a PyTorch network: TorchProblem, their base, and TorchModule, a network of the user."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Count
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block
from mpifed.data.labels import Kind
from mpifed.problems.base import Problem
from mpifed.problems.classifier import whole_labels
from mpifed.problems.torch_network import Network, first_line, pytorch

Shape = Annotated[tuple[Count, ...], Meta(min_length=1)]
NETWORKS: dict[tuple[bytes, int, int], Network] = {}  # by options, features and parameters; built once per process


class TorchProblem(Problem):
    """f_i(x) = mean cross-entropy of the scores of a network with parameters x + (lam/2)‖weights‖², labels 0 … C−1.

    ``value``, ``value_grad`` and ``predict`` use evaluation mode; ``grad`` uses training mode, with dropout.
    """

    shape: Annotated[Shape | None, Meta(description="shape of a sample, such as [3, 64, 64] (default: flat)")] = None
    lam: Annotated[
        float, Meta(ge=0, description="regularisation λ of weights: parameters of two or more dimensions")
    ] = 0.0
    device: Annotated[
        Literal["cpu", "cuda", "auto"], Meta(description="cuda: one GPU per rank; auto: a GPU if there is one")
    ] = "cpu"

    @abstractmethod
    def make(self, n: int, classes: int) -> Any:
        """The torch.nn.Module for samples of n features."""
        raise NotImplementedError

    def classes(self, n: int, size: int) -> int:
        """The number of classes of a network with ``size`` parameters; 0 where ``make`` does not need it."""
        return 0

    def sample(self, n: int) -> tuple[int, ...]:
        """The shape of a sample with n features; ValueError where ``shape`` does not have n numbers."""
        if self.shape is not None and math.prod(self.shape) != n:
            raise ValueError(
                f"samples have {n} features, but shape = {toml_value(self.shape)} needs {math.prod(self.shape)}"
            )
        return self.shape or (n,)

    def dim(self, data: Dataset) -> int:
        return len(self.initial(data, 0))

    def initial(self, data: Dataset, seed: int) -> Array:
        """The network's own initial parameters (n,), drawn by PyTorch from the seed."""
        if data.classes < 2:
            raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
        net = self._make(data.n, data.classes, int(stream(seed, "model").integers(2**63)))
        if net.output != (2, data.classes):
            raise ValueError(
                f"for 2 samples the network gives an array {toml_value(net.output)}: it must be "
                f"{toml_value((2, data.classes))}, one score per class"
            )
        return net.start

    def takes(self) -> Kind:
        return "classes"

    def labels(self, b: Array) -> Array:
        return whole_labels(b)

    def predict(self, block: Block, X: Array) -> Array:
        """The class with the largest score (the first of equal ones): (c, D); 0 on the padding."""
        return self._run(block, X, gradient=False)[2]

    def value(self, block: Block, X: Array) -> Array:
        return self._run(block, X, gradient=False)[0]

    def grad(self, block: Block, X: Array) -> Array:
        return self._run(block, X, train=True)[1]

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        return self._run(block, X)[:2]

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array]:
        return self._run(block, X)

    def _run(self, block: Block, X: Array, gradient: bool = True, train: bool = False) -> tuple[Array, Array, Array]:
        """Values (c,), gradients (c, n) if ``gradient``, and predicted classes (c, D); ``train`` enables dropout.

        Clients are computed one at a time and without padding, so that none depends on the others in the block.
        """
        net = self._network(block, X)
        X = np.ascontiguousarray(X, block.b.dtype)
        f = np.empty(len(block), block.b.dtype)
        G = np.empty((len(block) if gradient else 0, X.shape[-1]), block.b.dtype)
        found = np.zeros(block.b.shape, np.intp)
        for i in range(len(block)):
            d = np.count_nonzero(block.w[i])  # a mini-batch may hold fewer than d_i
            own = (X if X.ndim == 1 else X[i], block.dense(i)[:d], block.b[i, :d], block.w[i, :d])
            f[i], g, found[i, :d] = net.run(*own, gradient, train)
            if gradient:
                G[i] = g
        return f, G, found

    def _network(self, block: Block, X: Array) -> Network:
        """The network for these options and sizes, built once per process."""
        n, size = block.n, X.shape[-1]
        key = (msgspec.json.encode(self), n, size)
        if key not in NETWORKS:
            NETWORKS[key] = self._make(n, self.classes(n, size), 0)
        return NETWORKS[key]

    def _make(self, n: int, classes: int, seed: int) -> Network:
        return Network(lambda: self.make(n, classes), self.sample(n), self.lam, self.device, seed)


class TorchModule(TorchProblem, tag="torch", kw_only=True):
    """A network of your own: f_i(x) = mean cross-entropy of the scores of ``module`` + (lam/2)‖weights‖².

    ``module`` is a class derived from torch.nn.Module; naming it imports its file, which runs the file's code. It is
    called with ``arguments`` and maps samples (d, *shape) to scores (d, C), each sample independently. x holds the
    parameters in the order of named_parameters(). Buffers, batch normalisation and frozen parameters are refused.
    Dropout is active in the gradients that algorithms use, not in recorded values. Its random numbers are seeded with
    a checksum of the client's x, labels and first sample, so they are the same on any number of ranks.

    Source: FLAME, 2023, arXiv 2311.06756, section V.
    """

    module: Annotated[str, Meta(description="package.module:Class or path.py:Class")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of the class")] = {}  # noqa: RUF012

    def make(self, n: int, classes: int) -> Any:
        wrong = f"problem.module = {toml_value(self.module)} is wrong:"
        try:
            source, name, _ = plugins.parse(self.module)
            torch = pytorch()
            found = plugins.load(self.module)
        except ValueError as error:
            raise UserError(f"{wrong} {error}") from None
        if not issubclass(found, torch.nn.Module):
            raise UserError(f"{wrong} {name} of {source} is not derived from torch.nn.Module")
        try:
            return found(**self.arguments)
        except Exception as error:  # the user's code may raise anything
            raise UserError(
                f"{wrong} arguments = {toml_value(self.arguments)} cannot be used: {first_line(error)}"
            ) from None
