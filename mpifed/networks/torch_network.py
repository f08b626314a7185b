"""A PyTorch module as a function of parameters and the samples of a client, in pieces if there are many."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.streams import seed_of_piece
from mpifed.core.typing import Array
from mpifed.networks import torch_checks
from mpifed.networks.torch_function import ModuleFunction, NetworkOptions
from mpifed.networks.torch_losses import squeeze_scores

PIECE_BYTES = 1 << 22  # of samples in one pass on a CPU (on a GPU 8 times as many): activations take far more
GROUP_PARAMETERS = 1 << 23  # parameters of the clients in one pass on a CPU: 32 MB in single precision


class ClientSamples(NamedTuple):
    """The samples of one client."""

    A: Array  # (d, features)
    b: Array  # (d,)
    w: Array  # (d,)
    training: Array | None = None  # for test samples: the training samples whose statistics normalise them


class Network(ModuleFunction):
    """A function of all samples of a client, computed in pieces. ``group``: clients in one pass."""

    def __init__(self, make: Callable[[], Any], options: NetworkOptions, seed: int) -> None:
        super().__init__(make, options, seed)
        self.group = group_size(self.device.type, len(self.start))

    @cached_property
    def one_pass_reason(self) -> str:
        """The reason why all samples of a client go in one pass, without padding; empty if they need not."""
        if self.norms.live:
            return "batch normalisation makes the loss of a sample depend on the others in its mini-batch"
        if self.mean:
            return "the loss is a mean over the samples of a mini-batch, not one number for each of them"
        return torch_checks.mixing_reason(self)

    def run(
        self, x: Array, samples: ClientSamples, gradient: bool, seed: Any = None, rate: float | None = None
    ) -> tuple[float, Array, list[int]]:
        """Return f(x), ∇f(x) (n,) if ``gradient``, and the predicted class of each sample (d,).

        With a ``seed``, those of a local step, with dropout and without classes; with a ``rate``, a number of the type
        of x or of Python, x − rate·∇f(x) in place of ∇f(x).
        """
        f = 0.0
        total: list[Any] = []  # the gradient by each parameter
        if self.options.lam:
            f = self.options.lam / 2 * float(np.sum((self.weights * x) ** 2))
        classes: list[int] = []
        train = seed is not None
        seed = self.torch.tensor(seed if train else 0, dtype=self.torch.int64, device=self.device)
        with self.seed_generators(int(seed)), self.torch.set_grad_enabled(gradient):
            start, constants = self.parameters(x)
            P = {name: part.detach().requires_grad_(gradient) for name, part in start.items()}
            if self.options.lam and gradient:
                total = [part * (self.options.lam * (part.ndim > 1)) for part in start.values()]
            self.norms.set_mode(self.module, train)
            for k, piece in enumerate(self.pieces(*samples[:3])):
                constants = constants | dict.fromkeys(self.masks, seed_of_piece(seed, k))
                loss, scores = self.loss(P, constants, *piece)
                if gradient:
                    parts = self.torch.autograd.grad(loss, list(P.values()), materialize_grads=True)
                    # mostly the only piece: no sum with zeros
                    total = [g + part for g, part in zip(total, parts, strict=True)] if total else list(parts)
                f += float(loss.detach())
                classes += [] if train else self.classes(scores).tolist()
            if rate is not None:  # rounded twice, as in groups
                total = (
                    [part - rate * g for part, g in zip(start.values(), total, strict=True)]
                    if total
                    else [self.tensor(x)]
                )
        if not total:
            return f, np.zeros_like(x), classes
        return f, self.torch.cat([part.reshape(-1) for part in total]).cpu().numpy(), classes

    def scores(self, x: Array, samples: ClientSamples) -> tuple[Any, Any]:
        """Return the scores of all samples (d, …) in evaluation mode, and the targets (d,)."""
        with self.seed_generators(0), self.torch.no_grad(), ExitStack() as stack:
            trained, constants = self.parameters(x)
            P = trained | constants
            self.norms.set_mode(self.module, False)
            if samples.training is not None and self.norms.live:
                training = self.samples(samples.training)
                stack.enter_context(self.norms.statistics(lambda: self._call(P, training)))
            parts = [(self._call(P, piece), b) for piece, b, _ in self.pieces(*samples[:3])]
            return tuple(self.torch.cat(part) for part in zip(*parts, strict=True))

    def classes(self, scores: Any) -> Any:
        """Return the class with the largest score, the first at a tie (k,); of one score, whether it is above 0."""
        if self.options.loss.targets == "numbers":
            return self.torch.zeros(0)
        scores = squeeze_scores(scores)
        return scores.argmax(1) if scores.ndim > 1 else (scores > 0).long()

    def pieces(self, A: Array, b: Array, w: Array) -> Iterator[tuple[Any, Any, Any]]:
        """Yield samples (k, *shape), targets and weights in pieces, so that memory does not grow with d.

        All samples are one piece if the loss of a sample depends on the others.
        """
        k = self.piece_size(A.shape[1] * A.itemsize)
        # tested only if there are several pieces, because it takes a rehearsal
        if k < len(A) and self.one_pass_reason:
            k = len(A)
        for lo in range(0, len(A), k):
            yield self.samples(A[lo : lo + k]), self.targets(b[lo : lo + k]), self.tensor(w[lo : lo + k])

    def piece_size(self, size: int) -> int:
        """Return the samples of a client in one pass, a multiple of 4, for samples of ``size`` bytes."""
        room = PIECE_BYTES * (1 if self.device.type == "cpu" else 8)
        # the same for a client alone and in a group, because sums over other pieces have other bits
        return max(4, room // (self.group * max(1, size)) // 4 * 4)


def group_size(device: str, n: int) -> int:
    """Return how many clients with n parameters are in one pass: on a CPU 16, or 8 or 4 to save memory."""
    if device != "cpu":
        return 32
    largest = 1 << (GROUP_PARAMETERS // max(1, n)).bit_length() >> 1  # the largest power of two that fits
    return min(16, max(4, largest))
