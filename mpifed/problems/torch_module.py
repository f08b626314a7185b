"""Networks of PyTorch as problems; torch itself is imported when a network is made, never before."""
from __future__ import annotations

import importlib
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.component import UserError, toml_value
from mpifed.data.blocks import Block
from mpifed.data.clients import Array, Dataset
from mpifed.problems.base import Problem
from mpifed.problems.classifier import whole_labels
from mpifed.rng import stream

Width = Annotated[int, Meta(ge=1)]
Shape = Annotated[tuple[Width, ...], Meta(min_length=1)]
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID")
PIECE_BYTES = 1 << 20  # of samples in one pass: what a CNN makes of more does not stay in the cache
NETWORKS: dict[tuple[bytes, int, int], Network] = {}


class TorchProblem(Problem):
    """f_i(x) = mean cross-entropy of the scores of a network with parameters x + (lam/2)‖weights‖², labels 0 … C−1.

    Values and predictions are those of evaluation mode, and so is the gradient beside a value (``value_grad``, what is
    recorded); ``grad``, what algorithms step along, is that of training mode: dropout is active.
    """

    shape: Annotated[Shape | None, Meta(description="shape of a sample, such as [3, 64, 64] (default: flat)")] = None
    lam: Annotated[float, Meta(ge=0, description="regularisation λ of weights: parameters of two or more dimensions")] = 0.0
    device: Annotated[Literal["cpu", "cuda", "auto"], Meta(description="cuda: a GPU a rank; auto: where there is one")] = "cpu"

    def make(self, n: int, classes: int) -> Any:
        """The network for samples of n features; ``classes`` is 0 where nobody asks for its scores."""
        raise NotImplementedError

    def classes(self, n: int, size: int) -> int:
        """What ``make`` has to be told for a network of ``size`` parameters."""
        return 0

    def sample(self, n: int) -> tuple[int, ...]:
        """The shape of a sample of n features; ValueError where they do not fit."""
        if self.shape is not None and math.prod(self.shape) != n:
            raise ValueError(f"shape = {toml_value(self.shape)} has {math.prod(self.shape)} numbers, and samples have {n} features")
        return self.shape or (n,)

    def dim(self, data: Dataset) -> int:
        return len(self.initial(data, 0))

    def initial(self, data: Dataset, seed: int) -> Array:
        """The network's own initialisation, drawn by PyTorch from the seed."""
        if data.classes < 2:
            raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
        device_of(self.device)
        module, found = self._build(data.n, data.classes, int(stream(seed, "model").integers(2**63)))
        if found != (2, data.classes):
            raise ValueError(f"for 2 samples the network gives {toml_value(found)} numbers in place of "
                             f"{toml_value((2, data.classes))}: it must give a score for each class")
        return np.concatenate([p.detach().numpy().ravel() for p in module.parameters()]).astype(np.float64)

    def labels(self, b: Array) -> Array:
        return whole_labels(b)

    def predict(self, block: Block, X: Array) -> Array:
        """The class with the largest score, the lowest at a tie: (c, D); 0 on the padding."""
        net, classes = self._network(block, X), np.zeros(block.b.shape, np.intp)
        for i, (x, A, _, _) in enumerate(self._clients(block, X)):
            classes[i, : len(A)] = net.predict(x, A)
        return classes

    def value(self, block: Block, X: Array) -> Array:
        net = self._network(block, X)
        return np.array([net.value(*client) for client in self._clients(block, X)], block.b.dtype)

    def grad(self, block: Block, X: Array) -> Array:
        return self._gradients(block, X, train=True)[1]

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        return self._gradients(block, X, train=False)

    def _gradients(self, block: Block, X: Array, train: bool) -> tuple[Array, Array]:
        net = self._network(block, X)
        f, G = np.empty(len(block), block.b.dtype), np.empty((len(block), X.shape[-1]), block.b.dtype)
        for i, client in enumerate(self._clients(block, X)):
            f[i], G[i] = net.value_grad(*client, train)
        return f, G

    def _clients(self, block: Block, X: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """x (n,), A (d, features), b (d,) and w (d,) of one client after the other, without padding: neighbours change no bit."""
        for i, x in enumerate(np.broadcast_to(X.astype(block.b.dtype, copy=False), (len(block), X.shape[-1]))):
            d = np.count_nonzero(block.w[i])
            yield x, block.dense(i)[:d], block.b[i, :d], block.w[i, :d]

    def _network(self, block: Block, X: Array) -> Network:
        """The network of these options, made once a process."""
        key = (msgspec.json.encode(self), block.n, X.shape[-1])
        if key not in NETWORKS:
            module, _ = self._build(block.n, self.classes(block.n, X.shape[-1]), 0)
            NETWORKS[key] = Network(module, self.sample(block.n), self.lam, device_of(self.device))
        return NETWORKS[key]

    def _build(self, n: int, classes: int, seed: int) -> tuple[Any, tuple[int, ...]]:
        """The network, its parameters drawn from the seed, and the shape of its output for two samples."""
        torch, shape = pytorch(), self.sample(n)
        with drawing(seed), torch.no_grad():
            module = self.make(n, classes).eval()
            tied = [name for name, part in module.named_modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
            refuse([name for name, _ in module.named_buffers()] or tied, "is state beside the parameters or ties the samples of a "
                   "batch together, which no client may do: use GroupNorm or LayerNorm in place of BatchNorm")
            refuse([name for name, p in module.named_parameters() if not p.requires_grad], "is frozen: every parameter is trained")
            try:
                output = module(torch.zeros(2, *shape))
            except Exception as error:  # whatever the user's code raises
                raise ValueError(f"the network does not take samples of shape {toml_value(shape)}: {first_line(error)}") from None
        return module, tuple(getattr(output, "shape", ()))


class TorchModule(TorchProblem, tag="torch"):
    """A network of your own: f_i(x) = mean cross-entropy of the scores of ``module`` + (lam/2)‖weights‖².

    ``module`` is a class derived from torch.nn.Module in a Python module that can be imported (beside the study, or on
    PYTHONPATH); it is called with ``arguments`` and must make (d, C) scores of (d, *shape) samples, each on its own.
    Parameters x flat, in the order of named_parameters(). Refused: buffers, batch normalisation, frozen parameters.
    Dropout is active in the gradients that algorithms follow, not in what is recorded; its random numbers are seeded
    with a checksum of the client's x and samples, so that they are the same on any number of ranks.
    Source: flame, section V.
    """

    module: Annotated[str, Meta(description="package.module:Class")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of the class")] = {}  # noqa: RUF012

    def __post_init__(self) -> None:
        place, _, name = self.module.partition(":")
        if not all(part.isidentifier() for part in (*place.split("."), name)):
            raise ValueError(f"module = {toml_value(self.module)} is wrong: write package.module:Class")

    def make(self, n: int, classes: int) -> Any:
        torch, (place, _, name) = pytorch(), self.module.partition(":")
        wrong = f"problem.module = {toml_value(self.module)} is wrong:"
        try:
            found = getattr(importlib.import_module(place), name, None)
        except (Exception, SystemExit) as error:  # whatever the user's code raises
            raise UserError(f"{wrong} {place} cannot be imported: {first_line(error)}") from None
        if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
            raise UserError(f"{wrong} {name} of {place} is no class derived from torch.nn.Module")
        try:
            return found(**self.arguments)
        except Exception as error:  # likewise
            raise UserError(f"{wrong} it cannot be made with arguments = {toml_value(self.arguments)}: {first_line(error)}") from None


class Network:
    """A module as a function of its flat parameters x (n,) and of samples A (d, features): numpy in, numpy out."""

    def __init__(self, module: Any, shape: tuple[int, ...], lam: float, device: Any) -> None:
        self.torch, self.module, self.shape, self.lam, self.device = pytorch(), module, shape, lam, device
        self.torch.set_num_threads(1)  # sums of several threads differ in their last bits, and ranks are the threads here
        self.layout = {name: p.shape for name, p in module.named_parameters()}
        self.sizes = [math.prod(p) for p in self.layout.values()]
        self.weights = np.concatenate([np.full(math.prod(p), len(p) > 1) for p in self.layout.values()])
        self.derive = self.torch.func.grad_and_value(self.loss)

    def value(self, x: Array, A: Array, b: Array, w: Array) -> float:
        self.module.eval()
        with self.torch.no_grad():
            P = self.parameters(x)
            return sum((float(self.loss(P, *piece)) for piece in self.pieces(A, b, w)), self.penalty(x))

    def value_grad(self, x: Array, A: Array, b: Array, w: Array, train: bool) -> tuple[float, Array]:
        self.module.train(train)
        P, f, g = self.parameters(x), self.penalty(x), self.lam * (self.weights * x)
        # many clients stand at the same x: the first sample and the labels tell them and their mini-batches apart
        seed = zlib.crc32(np.ascontiguousarray(A[:1]), zlib.crc32(np.ascontiguousarray(b), zlib.crc32(np.ascontiguousarray(x))))
        with drawing(seed, self.device.index):
            for piece in self.pieces(A, b, w):
                parts, loss = self.derive(P, *piece)
                f += float(loss)
                g += self.torch.cat([parts[name].reshape(-1) for name in self.layout]).cpu().numpy()
        return f, g

    def predict(self, x: Array, A: Array) -> Array:
        self.module.eval()
        with self.torch.no_grad():
            P, b = self.parameters(x), np.zeros(len(A))
            return np.concatenate([np.zeros(0, np.intp), *(
                np.argmax(self.scores(P, samples).cpu().numpy(), axis=1) for samples, _, _ in self.pieces(A, b, b))])

    def scores(self, P: dict[str, Any], samples: Any) -> Any:
        return self.torch.func.functional_call(self.module, P, (samples,))

    def loss(self, P: dict[str, Any], samples: Any, b: Any, w: Any) -> Any:
        return (w * self.torch.nn.functional.cross_entropy(self.scores(P, samples), b, reduction="none")).sum()

    def penalty(self, x: Array) -> float:
        return self.lam / 2 * float(np.sum((self.weights * x) ** 2))

    def parameters(self, x: Array) -> dict[str, Any]:
        parts = self.tensor(x).split(self.sizes)
        return {name: part.view(shape) for (name, shape), part in zip(self.layout.items(), parts, strict=True)}

    def pieces(self, A: Array, b: Array, w: Array) -> Iterator[tuple[Any, Any, Any]]:
        """Samples (k, *shape), labels and weights, piece by piece: so memory does not grow with d."""
        k = max(1, PIECE_BYTES // max(1, A.shape[1] * A.itemsize))
        for at in range(0, len(A), k):
            samples = self.tensor(A[at : at + k]).view(-1, *self.shape)
            yield samples, self.tensor(b[at : at + k].astype(np.int64)), self.tensor(w[at : at + k])

    def tensor(self, values: Array) -> Any:
        return self.torch.tensor(values, device=self.device)  # a copy: its place in memory, too, is the same for every client


@contextmanager
def drawing(seed: int, gpu: int | None = None) -> Iterator[None]:
    """PyTorch's random numbers begin at ``seed``; afterwards they go on as before."""
    torch, gpus = pytorch(), [] if gpu is None else [gpu]
    with torch.random.fork_rng(devices=gpus):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for devices each time: 100 times slower
        for k in gpus:
            torch.cuda.default_generators[k].manual_seed(seed)
        yield


def device_of(name: str) -> Any:
    """The device of this rank: its own GPU where the node has as many as ranks, else one shared by turns."""
    torch = pytorch()
    count = torch.cuda.device_count() if name != "cpu" and torch.cuda.is_available() else 0
    if name == "cuda" and not count:
        raise UserError('problem.device = "cuda" is wrong: PyTorch finds no GPU on a node of this run; use "auto" or "cpu"')
    if not count:
        return torch.device("cpu")
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


def refuse(names: list[str], reason: str) -> None:
    if names:
        raise ValueError(f"the network's {', '.join(names)} {reason}")


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
