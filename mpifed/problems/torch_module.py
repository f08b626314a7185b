"""Networks of PyTorch as problems; torch itself is imported when a network is made, never before."""

from __future__ import annotations

import math
import os
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block
from mpifed.problems.base import Problem
from mpifed.problems.classifier import whole_labels

Shape = Annotated[tuple[Annotated[int, Meta(ge=1)], ...], Meta(min_length=1)]
LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
)
PIECE_BYTES = 1 << 20  # of samples in one pass: what a CNN makes of more does not stay in the cache
NETWORKS: dict[tuple[bytes, int, int], Network] = {}


class TorchProblem(Problem):
    """f_i(x) = mean cross-entropy of the scores of a network with parameters x + (lam/2)‖weights‖², labels 0 … C−1.

    ``value``, ``value_grad`` and ``predict`` are those of evaluation mode; ``grad`` is that of training mode, with dropout.
    """

    shape: Annotated[Shape | None, Meta(description="shape of a sample, such as [3, 64, 64] (default: flat)")] = None
    lam: Annotated[
        float, Meta(ge=0, description="regularisation λ of weights: parameters of two or more dimensions")
    ] = 0.0
    device: Annotated[
        Literal["cpu", "cuda", "auto"], Meta(description="cuda: a GPU a rank; auto: where there is one")
    ] = "cpu"

    @abstractmethod
    def make(self, n: int, classes: int) -> Any:
        """The network for samples of n features."""
        raise NotImplementedError

    def classes(self, n: int, size: int) -> int:
        """The classes that ``make`` is told for a network of ``size`` parameters; 0 where it need not know."""
        return 0

    def sample(self, n: int) -> tuple[int, ...]:
        """The shape of a sample of n features; ValueError where they do not fit."""
        if self.shape is not None and math.prod(self.shape) != n:
            raise ValueError(
                f"samples have {n} features, and shape = {toml_value(self.shape)} needs {math.prod(self.shape)}"
            )
        return self.shape or (n,)

    def dim(self, data: Dataset) -> int:
        return len(self.initial(data, 0))

    def initial(self, data: Dataset, seed: int) -> Array:
        """The network's own initialisation, drawn by PyTorch from the seed."""
        if data.classes < 2:
            raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
        net = self._make(data.n, data.classes, int(stream(seed, "model").integers(2**63)))
        if net.output != (2, data.classes):
            raise ValueError(
                f"for 2 samples the network gives an array {toml_value(net.output)} in place of "
                f"{toml_value((2, data.classes))}, a score for each class"
            )
        return net.start

    def labels(self, b: Array) -> Array:
        return whole_labels(b)

    def predict(self, block: Block, X: Array) -> Array:
        """The class with the largest score, the lowest at a tie: (c, D); 0 on the padding."""
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
        """Values (c,), gradients (c, n) if asked for and classes (c, D), one client after the other, without padding.

        So a client's bits do not depend on its neighbours.
        """
        net, found, X = (
            self._network(block, X),
            np.zeros(block.b.shape, np.intp),
            np.ascontiguousarray(X, block.b.dtype),
        )
        f, G = (
            np.empty(len(block), block.b.dtype),
            np.empty((len(block) if gradient else 0, X.shape[-1]), block.b.dtype),
        )
        for i in range(len(block)):
            d = np.count_nonzero(block.w[i])  # a mini-batch may hold fewer than d_i
            own = (X if X.ndim == 1 else X[i], block.dense(i)[:d], block.b[i, :d], block.w[i, :d])
            f[i], g, found[i, :d] = net.run(*own, gradient, train)
            if gradient:
                G[i] = g
        return f, G, found

    def _network(self, block: Block, X: Array) -> Network:
        """The network of these options, made once a process."""
        n, size = block.n, X.shape[-1]
        key = (msgspec.json.encode(self), n, size)
        if key not in NETWORKS:
            NETWORKS[key] = self._make(n, self.classes(n, size), 0)
        return NETWORKS[key]

    def _make(self, n: int, classes: int, seed: int) -> Network:
        return Network(lambda: self.make(n, classes), self.sample(n), self.lam, self.device, seed)


class TorchModule(TorchProblem, tag="torch", kw_only=True):
    """A network of your own: f_i(x) = mean cross-entropy of the scores of ``module`` + (lam/2)‖weights‖².

    ``module`` is a class derived from torch.nn.Module that can be imported, which runs the module that it is in; it is called
    with ``arguments`` and makes scores (d, C) of samples (d, *shape), each sample on its own. Parameters x flat, in the
    order of named_parameters(). Refused: buffers, batch normalisation, frozen parameters. Dropout is active in the gradients
    that algorithms step along, not in what is recorded; its random numbers are seeded with a checksum of the client's x,
    labels and first sample, so that they are the same on any number of ranks.  Source: flame, section V.
    """

    module: Annotated[str, Meta(description="package.module:Class or path.py:Class")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of the class")] = {}  # noqa: RUF012

    def make(self, n: int, classes: int) -> Any:
        torch, (place, _, name) = pytorch(), self.module.rpartition(":")
        wrong = f"problem.module = {toml_value(self.module)} is wrong:"
        try:
            found = plugins.load(self.module)
        except ValueError as error:
            raise UserError(f"{wrong} {error}") from None
        if not issubclass(found, torch.nn.Module):
            raise UserError(f"{wrong} {name} of {place} is no class derived from torch.nn.Module")
        try:
            return found(**self.arguments)
        except Exception as error:  # likewise
            raise UserError(
                f"{wrong} arguments = {toml_value(self.arguments)} do not suit it: {first_line(error)}"
            ) from None


class Network:
    """A module as a function of its flat parameters x (n,) and of samples A (d, features), b (d,), w (d,).

    ``start`` (n,) its own initialisation from ``seed``; ``output`` the shape of its output for two samples.
    """

    def __init__(self, make: Callable[[], Any], shape: tuple[int, ...], lam: float, device: str, seed: int) -> None:
        self.torch, self.shape, self.lam, self.device = pytorch(), shape, lam, device_of(device)
        self.torch.set_num_threads(
            1
        )  # sums of several threads may differ in their last bits, and the ranks are the threads here
        with self.drawing(seed), self.torch.no_grad():
            self.module = make().eval()
            norm = self.torch.nn.modules.batchnorm._BatchNorm
            wrong = {name: "a buffer" for name, _ in self.module.named_buffers()}
            wrong |= {
                name or "it": "batch normalisation"
                for name, part in self.module.named_modules()
                if isinstance(part, norm)
            }
            wrong |= {name: "a frozen parameter" for name, p in self.module.named_parameters() if not p.requires_grad}
            if wrong:
                raise UserError(
                    "the network of the problem must have nothing but trained parameters (GroupNorm in place of "
                    "BatchNorm), but " + ", ".join(f"{name} is {what}" for name, what in wrong.items())
                )
            try:
                self.output = tuple(getattr(self.module(self.torch.zeros(2, *shape)), "shape", ()))
            except Exception as error:  # whatever the user's code raises
                raise ValueError(
                    f"the network does not take samples of shape {toml_value(shape)}: {first_line(error)}"
                ) from None
        start = {name: p.detach().numpy().astype(np.float64) for name, p in self.module.named_parameters()}
        self.start = np.concatenate([np.zeros(0), *(p.ravel() for p in start.values())])
        self.shapes = {name: p.shape for name, p in start.items()}
        self.weights = np.concatenate([np.zeros(0, bool), *(np.full(p.size, p.ndim > 1) for p in start.values())])

    def run(
        self, x: Array, A: Array, b: Array, w: Array, gradient: bool, train: bool
    ) -> tuple[float, Array, list[int]]:
        """f, ∇f (n,) if asked for, and the class of every sample; in training mode, with dropout, if asked for."""
        f, g = self.lam / 2 * float(np.sum((self.weights * x) ** 2)), self.lam * (self.weights * x)
        classes: list[int] = []
        work = (
            self.torch.func.grad_and_value(self.loss, has_aux=True)
            if gradient
            else lambda *piece: ({}, self.loss(*piece))
        )
        # clients stand at a common x, a client passes over mini-batches: labels and a sample tell them apart
        seed = zlib.crc32(A[:1].tobytes(), zlib.crc32(b.tobytes(), zlib.crc32(x.tobytes()))) if train else 0
        with self.drawing(seed), self.torch.no_grad():
            P = self.parameters(x)
            self.module.train(train)
            for piece in self.pieces(A, b, w):
                parts, (loss, scores) = work(P, *piece)
                f += float(loss)
                classes += scores.argmax(1).tolist()
                if gradient:
                    g += self.torch.cat([parts[name].reshape(-1) for name in self.shapes]).cpu().numpy()
        return f, g, classes

    def loss(self, P: dict[str, Any], samples: Any, b: Any, w: Any) -> tuple[Any, Any]:
        scores = self.torch.func.functional_call(self.module, P, (samples,))
        return (w * self.torch.nn.functional.cross_entropy(scores, b, reduction="none")).sum(), scores

    def parameters(self, x: Array) -> dict[str, Any]:
        parts = self.tensor(x).split([math.prod(shape) for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def pieces(self, A: Array, b: Array, w: Array) -> Iterator[tuple[Any, Any, Any]]:
        """Samples (k, *shape), labels and weights, piece by piece: so memory does not grow with d."""
        k = max(1, PIECE_BYTES // max(1, A.shape[1] * A.itemsize))
        for at in range(0, len(A), k):
            samples = self.tensor(A[at : at + k]).view(-1, *self.shape)
            yield samples, self.tensor(b[at : at + k].astype(np.int64)), self.tensor(w[at : at + k])

    def tensor(self, values: Array) -> Any:
        return self.torch.tensor(
            values, device=self.device
        )  # a copy: its place in memory, too, is the same for every client

    @contextmanager
    def drawing(self, seed: int) -> Iterator[None]:
        """PyTorch's random numbers begin at ``seed``; afterwards they go on as before."""
        gpus = [] if self.device.index is None else [self.device.index]
        with self.torch.random.fork_rng(devices=gpus):
            self.torch.default_generator.manual_seed(
                seed
            )  # torch.manual_seed looks for devices each time: 100 times slower
            for k in gpus:
                self.torch.cuda.default_generators[k].manual_seed(seed)
            yield


def device_of(name: str) -> Any:
    """The device of this rank: a GPU of its own where the node has as many as ranks."""
    torch = pytorch()
    count = torch.cuda.device_count() if name != "cpu" and torch.cuda.is_available() else 0
    if name == "cuda" and not count:
        raise UserError(
            'problem.device = "cuda" is wrong: PyTorch finds no GPU on a node of this run; write "auto" or "cpu"'
        )
    if not count:
        return torch.device("cpu")
    torch.cuda.init()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS has no fixed order of sums
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    local = next((int(os.environ[key]) for key in LOCAL_RANKS if key in os.environ), 0)
    return torch.device("cuda", local % count)


def pytorch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UserError(f"this problem needs PyTorch ({error}): pip install mpifed[torch]") from None
    return torch


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
