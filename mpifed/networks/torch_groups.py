"""Clients of a network in groups: torch.func.vmap computes many of them at once.

All clients of a group have as many rows of samples; those that are padding are copies of a sample, with weight 0. A
client has the same bits in every group, because only such numbers of clients are used for which a rehearsal has shown
it; where there are fewer, one of them is repeated.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.networks import torch_channels, torch_dropout
from mpifed.networks.torch_network import Network
from mpifed.networks.torch_rehearsal import Form, Rehearsal

SHOWN = 8  # samples of a client in the rehearsal before round one; others follow when their number is first met


class Found(NamedTuple):
    """Values f (c,), gradients (c, n) or None, and scores (c, D, …) of clients."""

    f: Any
    gradient: Any
    scores: Any


class Groups:
    """The clients of blocks in groups. ``reason``: why they are computed one at a time; empty where they are not."""

    def __init__(self, net: Network, wanted: bool) -> None:
        self.net = net
        self.torch = net.torch
        self.size = net.group
        self.passes: dict[Form, Callable[..., tuple[Any, ...]]] = {}
        self.plain: set[Form] = set()  # passes for which that of ``torch_channels`` fails, or depends on places
        self.rehearsal = Rehearsal(net, self.one_pass, self.size, self.simpler)
        self.reason = net.whole if wanted else "problem.batched is false"

    def why(self, form: Form) -> str:
        """Why clients are computed one at a time in passes of this form; empty where they are not."""
        return self.reason or self.rehearsal.why(form)

    def described(self, n: int, dtype: Any) -> str:
        """Why clients with n features are computed one at a time; empty where a rehearsal finds no reason."""
        kind = getattr(self.torch, str(dtype))
        rows = min(SHOWN, self.net.piece(n * dtype.itemsize))
        forms = (Form(rows, True, train, kind, bool(self.net.options.lam)) for train in (True, False))
        return next(filter(None, map(self.why, forms)), "")

    def run(self, block: Block, X: Any, gradient: bool, seeds: Array | None = None) -> Found | None:
        """f, ∇f if ``gradient``, and the scores at X (n,) or (c, n); None where clients go one at a time.

        With ``seeds`` (c,) those of a local step, with dropout.
        """
        if self.reason:
            return None
        X = self.tensor(X)
        forms = self.forms(block, gradient, seeds is not None, X.dtype)
        if any(self.rehearsal.why(form) for form in set(forms)):
            return None
        samples = self.samples(block, X.dtype)
        seed = self.tensor(np.zeros(len(block), np.int64) if seeds is None else seeds)
        with self.torch.no_grad():
            found = [self._group(rows, forms, (X, *samples, seed)) for rows in self.rows(len(block), forms)]
            if len(found) == 1:
                return found[0]
            f, g, scores = zip(*found, strict=True)
            return Found(self.torch.cat(f), self.torch.cat(g) if gradient else None, self.torch.cat(scores))

    def forms(self, block: Block, gradient: bool, train: bool, dtype: Any) -> list[Form]:
        """The passes over the samples of a block, each with so many rows of every client."""
        D = block.b.shape[1]
        step = self.net.piece(block.n * dtype.itemsize)
        lam = bool(self.net.options.lam)
        return [Form(min(step, D - k), gradient, train, dtype, lam and k == 0) for k in range(0, D, step)]

    def rows(self, c: int, forms: list[Form]) -> Iterator[list[int]]:
        """The clients of each group, by position; the first of them again where they are too few."""
        # Example: groups of 4, and 6 clients. The first group is 0, 1, 2, 3; the second begins as 4, 5. Where a
        # rehearsal has shown other bits with two clients than with four, it becomes 4, 5, 4, and then 4, 5, 4, 4, which
        # always fits
        for first in range(0, c, self.size):
            rows = list(range(first, min(first + self.size, c)))
            while not all(self.rehearsal.fits(form, len(rows)) for form in set(forms)):
                rows.append(first)
            yield rows

    def _group(self, rows: list[int], forms: list[Form], parts: tuple[Any, ...]) -> Found:
        """What is found of the clients at positions ``rows``, each of them once."""
        # repeated clients stand last, and their results are cut off
        count = len(set(rows))
        A, b, w, seed = (chosen(part, rows) for part in parts[1:])
        X = parts[0] if parts[0].ndim == 1 else chosen(parts[0], rows)
        # a copy for each client, because a point that vmap shares takes other kernels than points of their own
        X = X.expand(len(rows), -1).contiguous()
        found: list[Found] = []
        first = 0
        for k, form in enumerate(forms):
            part = slice(first, first + form.rows)
            first += form.rows
            piece = (A[:, part].reshape(len(rows), form.rows, *self.net.options.shape), b[:, part], w[:, part])
            found.append(self.one_pass(form, X, *piece, torch_dropout.of_piece(seed, k)))
        # added up piece by piece from the first on, as a client alone does it: any other order has other bits
        f, g, scores = found[0]
        for more in found[1:]:
            f = f + more.f
            g = g if g is None else g + more.gradient
        if len(found) > 1:
            scores = self.torch.cat([one.scores for one in found], 1)
        return Found(f[:count], g if g is None else g[:count], scores[:count])

    def one_pass(self, form: Form, X: Any, samples: Any, b: Any, w: Any, seed: Any) -> Found:
        """One pass of vmap over clients at X (g, n), with samples (g, k, …), b and w (g, k), and seeds (g,)."""
        if form not in self.passes:
            self.passes[form] = self.function(form)
        if self.net.options.loss.targets == "classes":
            b = b.to(self.torch.int64)
        if self.net.options.integers:
            samples = samples.to(self.torch.int64)
        return Found(*self.passes[form](X, samples, b, w, seed))

    def simpler(self, form: Form) -> bool:
        """Compute passes of a form without what ``torch_channels`` has; whether they were computed with it."""
        if form in self.plain or not torch_channels.suits(self.net):
            return False
        self.plain.add(form)
        self.passes.pop(form, None)
        return True

    def function(self, form: Form) -> Any:
        """The function of a pass: arrays of a group -> values, gradients or None, and scores."""
        net, torch = self.net, self.torch
        constants = net.constants_in(form.dtype)
        suits = torch_channels.suits(net)
        weights = torch.from_numpy(net.weights).to(net.device)

        def loss(x: Any, samples: Any, b: Any, w: Any, seed: Any) -> tuple[Any, Any]:
            net.norms.mode(net.module, form.train)
            with torch_channels.last(suits and form not in self.plain):
                value, scores = net.loss(net.split(x), constants | dict.fromkeys(net.masks, seed), samples, b, w)
            if form.ridge:
                value = value + net.options.lam / 2 * (x * weights).square().sum()
            return value, scores

        computed = torch.func.vmap(torch.func.grad_and_value(loss, has_aux=True) if form.gradient else loss)

        def found(*arrays: Any) -> tuple[Any, Any, Any]:
            gradient, (f, scores) = computed(*arrays) if form.gradient else (None, computed(*arrays))
            return f, gradient, scores

        return found

    def samples(self, block: Block, dtype: Any) -> tuple[Any, Any, Any]:
        """Samples (c, D, features), labels and weights (c, D) on the device; padding is a copy of the first sample."""
        A, b, w = (self.tensor(part) for part in (block.products.full(block), block.b, block.w))
        # zeros might be no samples to the network, such as a word without a number; with weight 0 any sample will do
        if not bool((w > 0).all()):
            A = self.torch.where((w > 0)[:, :, None], A, A[:, :1])
        return A, b, w

    def classes(self, block: Block, scores: Any) -> Array:
        """The predicted classes (c, D) from scores (c, D, …), 0 on the padding; like the labels of the block."""
        found = self.net.classes(scores.flatten(0, 1))
        if not len(found):
            return np.zeros(block.b.shape, np.intp)
        return self.like(block.b, found.view(block.b.shape)) * (block.w > 0)

    def like(self, given: Any, found: Any) -> Any:
        """What was found as an array of the kind of those that were given."""
        return found if self.torch.is_tensor(given) else found.cpu().numpy()

    def tensor(self, values: Any) -> Any:
        """An array as a tensor on the device, without a copy where that is possible."""
        if not self.torch.is_tensor(values):
            usable = values if values.flags.carray else np.require(values, requirements=("C", "A", "W"))
            values = self.torch.from_numpy(usable)
        return values.to(self.net.device)


def chosen(part: Any, rows: list[int]) -> Any:
    """The rows of a tensor; a view where they are neighbours."""
    first = rows[0]
    return part[first : first + len(rows)] if len(set(rows)) == len(rows) else part[rows]
