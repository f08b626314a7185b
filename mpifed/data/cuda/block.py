"""Blocks on a GPU whose scores, gradients and local steps kernels of the extra ``cuda`` compute, and sums of rows.

Everything else is PyTorch's. Some clients of a block are picked by their positions: no sample is copied for a gradient,
as it is for PyTorch's products. The bits of a client are those that it has in any other block.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from mpifed.core.arrays import pytorch
from mpifed.core.typing import Array
from mpifed.data.cuda.device import Device
from mpifed.data.cuda.forms import Form, Pull
from mpifed.data.cuda.launch import Clients, Kernels, Model
from mpifed.data.cuda.tree import tree_sum
from mpifed.data.device_block import DeviceBlock


class CudaBlock(DeviceBlock):
    """A block over whose samples a gradient passes once, in one launch for all clients."""

    def one_pass(
        self, X: Any, residual: Callable[[Array], Array], logistic: bool, ridge: Any | None
    ) -> tuple[Any, Any]:
        factors = None if ridge is None else ridge[:, 0]
        return self._gradients(Model("logistic" if logistic else "linear"), X, factors)

    def softmax_grad(self, X: Any, lam: float, bias: bool, grad: Callable[..., Any]) -> Any:
        model = Model("softmax", classes=X.shape[-1] // (self.n + bias), bias=bias)
        factors = self.note("lam", partial(filled, lam))
        return self._gradients(model, X, factors)[1]

    def _gradients(self, model: Model, X: Any, factors: Any | None) -> tuple[Any, Any]:
        """Scores and gradients at X, (n,) or (c, n), with the ``factors`` (c,) of the regulariser, or None for 0."""
        if factors is None:
            factors = self.note("no regulariser", partial(filled, 0.0))
        kernels, clients = self._picked(model, factors)
        return kernels.gradients(clients, self._numbers(X))

    def steps(
        self, form: Form, X: Any, gammas: Sequence[Any], correction: Any | None = None, pull: Pull | None = None
    ) -> Any:
        """w (c, n) after a step w ← w − γ(∇f_i(w) + correction_i + μ(w − z_i)) for each γ, from w = x_i, in one launch.

        ``gammas``: a number or (c, 1) each; a client rests where it is 0. X, ``correction`` and z, (n,) or (c, n).
        """
        classes = X.shape[-1] // (self.n + form.bias)
        model = Model(form.residual, form.penalty, classes, form.bias)
        factors = self.note("factors of steps", lambda block: self._numbers(form.factors(block)))
        kernels, clients = self._picked(model, factors)
        terms = {} if correction is None else {"correction": self._numbers(correction)}
        if pull is not None:
            mu = self.xp.asarray([pull.mu], dtype=self.xp.float64)
            terms |= {"pull": self._numbers(mu), "anchor": self._numbers(pull.anchor)}
        return kernels.steps(clients, self._numbers(X), self._rates(gammas), **terms)

    def _rates(self, gammas: Sequence[Any]) -> Any:
        """The step sizes of all steps, (k0,), or (c, k0) where clients have their own."""
        xp = self.xp
        if all(isinstance(gamma, int | float) for gamma in gammas):
            return self._numbers(xp.asarray(gammas, dtype=xp.float64))
        shape = (len(self), 1)
        columns = [xp.broadcast_to(xp.asarray(gamma, dtype=xp.float64), shape) for gamma in gammas]
        return self._numbers(xp.concat(columns, axis=1))

    def _picked(self, model: Model, factors: Any) -> tuple[Kernels, Clients]:
        """The kernels of a model, and these clients as they read them."""
        whole = self if self.source is None else self.source[0]
        kernels = Kernels(model, gpu(whole.b.dtype, whole.b.device))
        who = self.note("who", positions)
        return kernels, kernels.pick(whole.note("samples", partial(samples, kernels)), who, factors.contiguous())

    def _numbers(self, array: Any) -> Any:
        """An array as kernels read it: of the type of the samples, its numbers side by side."""
        whole = self if self.source is None else self.source[0]
        return array.to(whole.b.dtype).contiguous()


def samples(kernels: Kernels, block: Any) -> Clients:
    """All clients of a block as kernels read them, without a regulariser."""
    return kernels.clients(block.A.contiguous(), block.b.contiguous(), block.w.contiguous(), filled(0.0, block))


def filled(number: float, block: Any) -> Any:
    """The number for each client of a block, in the type of the samples: (c,)."""
    whole = block if block.source is None else block.source[0]
    return block.xp.full(len(block), number, dtype=whole.b.dtype)


def positions(block: Any) -> Any:
    """Where the clients of a block are in the one that it is a part of, or in itself: (c,) on the device."""
    rows = slice(0, len(block)) if block.source is None else block.source[1]
    return block.xp.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def added(rows: Any, indices: Array | None) -> Any:
    """The sum of rows (c, N) along the tree, of which they are the leaves ``indices``, rising; None: 0, 1, 2 …"""
    device = gpu(rows.dtype, rows.device)
    if indices is None:
        return tree_sum(device, rows.contiguous())
    where = pytorch().tensor(indices, dtype=pytorch().int64, device=rows.device)
    return tree_sum(device, rows.contiguous(), where, int(indices[-1]) + 1)


@cache
def gpu(dtype: Any, device: Any) -> Device:
    """Numbers of a type on the device of PyTorch, which becomes numba's too."""
    torch = pytorch()
    if device.type == "cuda":
        from numba import cuda

        torch.cuda.set_device(device)
        cuda.select_device(device.index)
        torch.utils.deterministic.fill_uninitialized_memory = False  # kernels write every number that they ask for
    number = np.dtype(str(dtype).removeprefix("torch."))
    return Device(number, partial(torch.empty, dtype=dtype, device=device))
