"""A PyTorch module as a function of one flat parameter vector; torch is imported only when a network is built."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mpifed.core import threads
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array

LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
)  # environment variables with the number of this rank on its node
PIECE_BYTES = 1 << 20  # of samples in one pass; the activations of a CNN for more would not fit into the CPU's cache


class Network:
    """The loss of a module as a function of flat parameters x (n,) and samples A (d, features), b (d,), w (d,).

    ``start`` (n,): initial parameters, drawn from ``seed``. ``output``: shape of the output for two samples.
    UserError where the module has anything but trainable parameters, ValueError where it cannot take the samples.
    """

    def __init__(self, make: Callable[[], Any], shape: tuple[int, ...], lam: float, device: str, seed: int) -> None:
        self.torch, self.shape, self.lam, self.device = pytorch(), shape, lam, device_of(device)
        self.torch.set_num_threads(threads.of_networks())
        with self.seeded(seed), self.torch.no_grad():
            self.module = make().eval()
            self._check_module()
            self.output = self._output_shape()
        start = {name: p.detach().numpy().astype(np.float64) for name, p in self.module.named_parameters()}
        self.start = np.concatenate([np.zeros(0), *(p.ravel() for p in start.values())])
        self.shapes = {name: p.shape for name, p in start.items()}
        self.weights = np.concatenate([np.zeros(0, bool), *(np.full(p.size, p.ndim > 1) for p in start.values())])

    def _check_module(self) -> None:
        """UserError where the module has buffers, batch normalisation or frozen parameters."""
        norm = self.torch.nn.modules.batchnorm._BatchNorm
        wrong = {name: "a buffer" for name, _ in self.module.named_buffers()}
        wrong |= {
            name or "it": "batch normalisation" for name, part in self.module.named_modules() if isinstance(part, norm)
        }
        wrong |= {name: "a frozen parameter" for name, p in self.module.named_parameters() if not p.requires_grad}
        if wrong:
            raise UserError(
                "the network of the problem must have only trainable parameters (GroupNorm instead of BatchNorm), but "
                + ", ".join(f"{name} is {what}" for name, what in wrong.items())
            )

    def _output_shape(self) -> tuple[int, ...]:
        """The shape of the output for two samples of zeros; ValueError where the module fails."""
        try:
            return tuple(getattr(self.module(self.torch.zeros(2, *self.shape)), "shape", ()))
        except Exception as error:  # the user's code may raise anything
            raise ValueError(
                f"the network does not take samples of shape {toml_value(self.shape)}: {first_line(error)}"
            ) from None

    def run(
        self, x: Array, A: Array, b: Array, w: Array, gradient: bool, train: bool
    ) -> tuple[float, Array, list[int]]:
        """f(x), ∇f(x) (n,) if ``gradient``, and the predicted class of each sample (d,).

        ``train`` enables dropout. Its random numbers are seeded with a checksum of x, the labels and the first sample:
        clients at the same x and mini-batches of a client then differ, and the number of ranks does not matter.
        """
        f, g = self.lam / 2 * float(np.sum((self.weights * x) ** 2)), self.lam * (self.weights * x)
        classes: list[int] = []
        work = self.loss_and_gradient if gradient else self.loss_only
        seed = zlib.crc32(A[:1].tobytes(), zlib.crc32(b.tobytes(), zlib.crc32(x.tobytes()))) if train else 0
        with self.seeded(seed), self.torch.no_grad():
            P = self.parameters(x)
            self.module.train(train)
            for piece in self.pieces(A, b, w):
                parts, (loss, scores) = work(P, *piece)
                f += float(loss)
                classes += scores.argmax(1).tolist()
                if gradient:
                    g += self.torch.cat([parts[name].reshape(-1) for name in self.shapes]).cpu().numpy()
        return f, g, classes

    def loss_and_gradient(self, P: dict[str, Any], *piece: Any) -> tuple[dict[str, Any], tuple[Any, Any]]:
        """Gradients by parameter name, and (loss, scores)."""
        found: tuple[dict[str, Any], tuple[Any, Any]] = self.torch.func.grad_and_value(self.loss, has_aux=True)(
            P, *piece
        )
        return found

    def loss_only(self, P: dict[str, Any], *piece: Any) -> tuple[dict[str, Any], tuple[Any, Any]]:
        """No gradients, and (loss, scores)."""
        return {}, self.loss(P, *piece)

    def loss(self, P: dict[str, Any], samples: Any, b: Any, w: Any) -> tuple[Any, Any]:
        """Σ_j w_j · cross-entropy of sample j, and the scores (k, C)."""
        scores = self.torch.func.functional_call(self.module, P, (samples,))
        return (w * self.torch.nn.functional.cross_entropy(scores, b, reduction="none")).sum(), scores

    def parameters(self, x: Array) -> dict[str, Any]:
        """x as the tensors of the module, by name."""
        parts = self.tensor(x).split([math.prod(shape) for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def pieces(self, A: Array, b: Array, w: Array) -> Iterator[tuple[Any, Any, Any]]:
        """Samples (k, *shape), labels and weights in pieces, so that memory does not grow with d."""
        k = max(1, PIECE_BYTES // max(1, A.shape[1] * A.itemsize))
        for lo in range(0, len(A), k):
            samples = self.tensor(A[lo : lo + k]).view(-1, *self.shape)
            yield samples, self.tensor(b[lo : lo + k].astype(np.int64)), self.tensor(w[lo : lo + k])

    def tensor(self, values: Array) -> Any:
        """A copy, so that the alignment in memory, which may change the last bits, is the same for every client."""
        return self.torch.tensor(values, device=self.device)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Seed PyTorch's random number generators; restore their state afterwards."""
        gpus = [] if self.device.index is None else [self.device.index]
        with self.torch.random.fork_rng(devices=gpus):
            self.torch.default_generator.manual_seed(seed)  # torch.manual_seed is 100 times slower: it searches devices
            for k in gpus:
                self.torch.cuda.default_generators[k].manual_seed(seed)
            yield


def device_of(name: str) -> Any:
    """The device of this rank; if a node has as many GPUs as ranks, each rank gets its own."""
    torch = pytorch()
    count = torch.cuda.device_count() if name != "cpu" and torch.cuda.is_available() else 0
    if name == "cuda" and not count:
        raise UserError(
            'problem.device = "cuda" is wrong: PyTorch finds no GPU on a node of this run: write "auto" or "cpu"'
        )
    if not count:
        return torch.device("cpu")
    torch.cuda.init()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else the order of sums in cuBLAS is not fixed
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    local = next((int(os.environ[key]) for key in LOCAL_RANKS if key in os.environ), 0)
    return torch.device("cuda", local % count)


def pytorch() -> Any:
    """The module torch; UserError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise UserError(f"this problem needs PyTorch ({error}): pip install mpifed[torch]") from None
    return torch


def first_line(error: BaseException) -> str:
    """Type and message of an error, on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
