"""Clients of a network in groups: torch.func.vmap computes many of them at once.

All clients of a group have the same number of samples; padding is a copy of a sample, with weight 0. A client has the
same bits in every group, because only those numbers of clients are used for which a rehearsal has shown it; a smaller
group repeats one of its clients.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.networks import torch_channels, torch_dropout
from mpifed.networks.torch_network import Network
from mpifed.networks.torch_rehearsal import GroupRehearsal, PassForm

SHOWN = 8  # samples of a client in the rehearsal before round one; other numbers are rehearsed when they occur


class GroupResult(NamedTuple):
    """The values f (c,), gradients (c, n) or None, and scores (c, D, …) of clients."""

    f: Any
    gradient: Any
    scores: Any


class Groups:
    """The clients of blocks, computed in groups unless ``reason`` says why they are computed one at a time."""

    def __init__(self, net: Network, wanted: bool) -> None:
        self.net = net
        self.torch = net.torch
        self.size = net.group
        self.passes: dict[PassForm, Callable[..., tuple[Any, ...]]] = {}
        self.without_channels: set[PassForm] = (
            set()
        )  # passes in which ``torch_channels`` fails or bits depend on positions
        self.rehearsal = GroupRehearsal(net, self.one_pass, self.size, self.fall_back)
        self.reason = net.one_pass_reason if wanted else "problem.batched is false"

    def why(self, form: PassForm) -> str:
        """Return why clients are computed one at a time in passes of this form; empty if they are not."""
        return self.reason or self.rehearsal.why(form)

    def first_reason(self, n: int, dtype: Any) -> str:
        """Return why clients with n features are computed one at a time; empty if a rehearsal finds no reason."""
        torch_dtype = getattr(self.torch, str(dtype))
        rows = min(SHOWN, self.net.piece_size(n * dtype.itemsize))
        forms = (PassForm(rows, True, train, torch_dtype, bool(self.net.options.lam)) for train in (True, False))
        return next(filter(None, map(self.why, forms)), "")

    def run(self, block: Block, X: Any, gradient: bool, seeds: Array | None = None) -> GroupResult | None:
        """Compute f, ∇f if ``gradient``, and scores at X (n,) or (c, n); None if clients are computed one at a time.

        With ``seeds`` (c,), compute those of a local step, with dropout.
        """
        if self.reason:
            return None
        X = self.tensor(X)
        forms = self.list_passes(block, gradient, seeds is not None, X.dtype)
        if any(self.rehearsal.why(form) for form in set(forms)):
            return None
        samples = self.samples(block, X.dtype)
        seed = self.tensor(np.zeros(len(block), np.int64) if seeds is None else seeds)
        with self.torch.no_grad():
            groups = self.groups_of(len(block), forms)
            results = [self.compute_group(rows, forms, (X, *samples, seed)) for rows in groups]
            if len(results) == 1:
                return results[0]
            f, g, scores = zip(*results, strict=True)
            return GroupResult(self.torch.cat(f), self.torch.cat(g) if gradient else None, self.torch.cat(scores))

    def list_passes(self, block: Block, gradient: bool, train: bool, dtype: Any) -> list[PassForm]:
        """Return the passes over the samples of a block, each with the same rows of every client."""
        D = block.b.shape[1]
        step = self.net.piece_size(block.n * dtype.itemsize)
        lam = bool(self.net.options.lam)
        return [PassForm(min(step, D - k), gradient, train, dtype, lam and k == 0) for k in range(0, D, step)]

    def groups_of(self, c: int, forms: list[PassForm]) -> Iterator[list[int]]:
        """Yield the positions of the clients of each group; too small a group repeats its first client."""
        # Example: groups of 4, and 6 clients. The first group is 0, 1, 2, 3; the second begins as 4, 5. If a
        # rehearsal shows other bits with two clients than with four, it becomes 4, 5, 4, and then 4, 5, 4, 4, which
        # always fits
        for first in range(0, c, self.size):
            rows = list(range(first, min(first + self.size, c)))
            while not all(self.rehearsal.fits(form, len(rows)) for form in set(forms)):
                rows.append(first)
            yield rows

    def compute_group(self, rows: list[int], forms: list[PassForm], parts: tuple[Any, ...]) -> GroupResult:
        """Return the results of the clients at positions ``rows``, each client once."""
        # repeated clients stand last, so their results can be cut off
        count = len(set(rows))
        A, b, w, seed = (select_rows(part, rows) for part in parts[1:])
        X = parts[0] if parts[0].ndim == 1 else select_rows(parts[0], rows)
        # a copy for each client, because vmap uses other kernels, with other bits, for a shared point
        X = X.expand(len(rows), -1).contiguous()
        results: list[GroupResult] = []
        first = 0
        for k, form in enumerate(forms):
            part = slice(first, first + form.rows)
            first += form.rows
            piece = (A[:, part].reshape(len(rows), form.rows, *self.net.options.shape), b[:, part], w[:, part])
            results.append(self.one_pass(form, X, *piece, torch_dropout.piece_seeds(seed, k)))
        # added up piece by piece from the first, as for a client alone: any other order has other bits
        f, g, scores = results[0]
        for more in results[1:]:
            f = f + more.f
            g = g if g is None else g + more.gradient
        if len(results) > 1:
            scores = self.torch.cat([result.scores for result in results], 1)
        return GroupResult(f[:count], g if g is None else g[:count], scores[:count])

    def one_pass(self, form: PassForm, X: Any, samples: Any, b: Any, w: Any, seed: Any) -> GroupResult:
        """Compute one pass over clients at X (g, n), with samples (g, k, …), b and w (g, k), and seeds (g,)."""
        if form not in self.passes:
            self.passes[form] = self.make_pass(form)
        if self.net.options.loss.targets == "classes":
            b = b.to(self.torch.int64)
        if self.net.options.integers:
            samples = samples.to(self.torch.int64)
        return GroupResult(*self.passes[form](X, samples, b, w, seed))

    def fall_back(self, form: PassForm) -> bool:
        """Compute passes of a form without ``torch_channels`` from now on; return whether that changes anything."""
        if form in self.without_channels or not torch_channels.suits(self.net):
            return False
        self.without_channels.add(form)
        self.passes.pop(form, None)
        return True

    def make_pass(self, form: PassForm) -> Any:
        """Return the function of a pass: arrays of a group -> values, gradients or None, and scores."""
        net, torch = self.net, self.torch
        constants = net.constants_in(form.dtype)
        suits = torch_channels.suits(net)
        weights = torch.from_numpy(net.weights).to(net.device)

        def loss(x: Any, samples: Any, b: Any, w: Any, seed: Any) -> tuple[Any, Any]:
            net.norms.set_mode(net.module, form.train)
            with torch_channels.channels_last(suits and form not in self.without_channels):
                value, scores = net.loss(net.split(x), constants | dict.fromkeys(net.masks, seed), samples, b, w)
            if form.ridge:
                value = value + net.options.lam / 2 * (x * weights).square().sum()
            return value, scores

        batched_loss = torch.func.vmap(torch.func.grad_and_value(loss, has_aux=True) if form.gradient else loss)

        def run_pass(*arrays: Any) -> tuple[Any, Any, Any]:
            gradient, (f, scores) = batched_loss(*arrays) if form.gradient else (None, batched_loss(*arrays))
            return f, gradient, scores

        return run_pass

    def samples(self, block: Block, dtype: Any) -> tuple[Any, Any, Any]:
        """Return samples (c, D, features), labels and weights (c, D) on the device; padding copies the first sample."""
        A, b, w = (self.tensor(part) for part in (block.products.to_dense(block), block.b, block.w))
        # zeros may be no valid samples, such as an unknown word number; with weight 0 any valid sample will do
        if not bool((w > 0).all()):
            A = self.torch.where((w > 0)[:, :, None], A, A[:, :1])
        return A, b, w

    def classes(self, block: Block, scores: Any) -> Array:
        """Return the predicted classes (c, D) from scores (c, D, …), 0 on the padding; like the block's labels."""
        predicted = self.net.classes(scores.flatten(0, 1))
        if not len(predicted):
            return np.zeros(block.b.shape, np.intp)
        return self.as_type_of(block.b, predicted.view(block.b.shape)) * (block.w > 0)

    def as_type_of(self, like: Any, result: Any) -> Any:
        """Return a result as an array or a tensor, whichever ``like`` is."""
        return result if self.torch.is_tensor(like) else result.cpu().numpy()

    def tensor(self, values: Any) -> Any:
        """Return an array as a tensor on the device, without a copy if possible."""
        if not self.torch.is_tensor(values):
            usable = values if values.flags.carray else np.require(values, requirements=("C", "A", "W"))
            values = self.torch.from_numpy(usable)
        return values.to(self.net.device)


def select_rows(values: Any, rows: list[int]) -> Any:
    """Return the rows of a tensor; a view if they are consecutive."""
    first = rows[0]
    return values[first : first + len(rows)] if len(set(rows)) == len(rows) else values[rows]
