"""Clients of a network in groups: torch.func.vmap computes many of them at once.

All clients of a group have the same number of samples; padding is a copy of a sample, with weight 0. A client has the
same bits in every group, because only those numbers of clients are used for which a rehearsal has shown it; a smaller
group repeats one of its clients.

One ordinary backward pass of the sum of their losses gives the gradients of all: clients share no parameter.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.streams import seed_of_piece
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.networks import torch_channels
from mpifed.networks.torch_network import Network
from mpifed.networks.torch_rehearsal import GroupRehearsal, PassForm

SHOWN = 8  # samples of a client in the rehearsal before round one; other numbers are rehearsed when they occur


class GroupResult(NamedTuple):
    """The values f (c,), gradients or models after a step (c or 0, n), and scores (c, D, …) of clients."""

    f: Any
    rows: Any
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
        return next(filter(None, map(self.why, self.first_forms(n, dtype))), "")

    def first_choice(self, n: int, dtype: Any) -> tuple[int, str]:
        """Return how many clients with n features are in a pass of a local step, and why."""
        reason = self.first_reason(n, dtype)
        form = self.first_forms(n, dtype)[0]
        if reason:
            return 1, reason
        return 1 if self.rehearsal.prefers_alone(form) else self.size, self.rehearsal.describe(form)

    def first_forms(self, n: int, dtype: Any) -> list[PassForm]:
        """Return the passes that are rehearsed before round one: in training and in evaluation."""
        torch_dtype = getattr(self.torch, str(dtype))
        rows = min(SHOWN, self.net.piece_size(n * dtype.itemsize))
        return [PassForm(rows, True, train, torch_dtype, bool(self.net.options.lam)) for train in (True, False)]

    def run(
        self, block: Block, X: Array, gradient: bool, seeds: Array | None = None, rate: Array | float | None = None
    ) -> GroupResult | None:
        """Compute f, ∇f if ``gradient``, and scores at X (n,) or (c, n); None if clients are computed one at a time.

        With ``seeds`` (c,), compute those of a local step, with dropout; with ``rate``, a number or (c, 1), compute
        x − rate·∇f in place of ∇f.
        """
        if self.reason:
            return None
        models: Any = self.tensor(X)
        forms = self.list_passes(block, gradient, seeds is not None, models.dtype)
        if any(self.rehearsal.why(form) for form in set(forms)) or self.prefer_alone(forms):
            return None
        c = len(block)
        seed = self.tensor(np.zeros(c, np.int64) if seeds is None else seeds)
        like = {"dtype": models.dtype, "device": models.device}
        arrays = (models, *self.samples(block, models.dtype), seed)
        rates = None if rate is None else self.torch.as_tensor(rate, **like).reshape(-1, 1).expand(c, 1)
        found: Any = models.new_empty(c if gradient else 0, X.shape[-1])
        values = []
        with self.torch.no_grad():
            for rows in self.groups_of(c, forms):
                f, scores, *parts = self.compute_group(rows, forms, arrays)
                values.append((f, scores))
                if gradient:
                    own = slice(rows[0], rows[0] + len(f))
                    self.write(found[own], parts, rates if rates is None else rates[own])
                if rates is not None:
                    # rounded twice, as by SGD, so that a client has the same bits alone
                    self.torch.sub(models if models.ndim == 1 else models[own], found[own], out=found[own])
        f, scores = values[0] if len(values) == 1 else map(self.torch.cat, zip(*values, strict=True))
        return GroupResult(f, found, scores)

    def prefer_alone(self, forms: list[PassForm]) -> bool:
        """Return whether clients with these passes are computed alone to save time."""
        # several pieces are added up in double precision there
        return len(forms) == 1 and self.rehearsal.prefers_alone(forms[0])

    def write(self, into: Any, parts: list[Any], rates: Any) -> None:
        """Write the gradients by parameter (k, …) into rows (k, n), multiplied by ``rates`` (k, 1) if there are any."""
        views = list(self.net.split(into).values())
        if rates is None:
            self.torch._foreach_copy_(views, parts)
            return
        # not in place: autograd may return one tensor for two parameters, or one number for many entries
        for view, part in zip(views, parts, strict=True):
            self.torch.mul(part, rates.view(-1, *[1] * (part.ndim - 1)), out=view)

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

    def compute_group(self, rows: list[int], forms: list[PassForm], arrays: tuple[Any, ...]) -> list[Any]:
        """Return f, scores and gradients by parameter of the clients at positions ``rows``, each client once."""
        # repeated clients stand last, so their results can be cut off
        count = len(set(rows))
        A, b, w, seed = (select_rows(part, rows) for part in arrays[1:])
        X = arrays[0] if arrays[0].ndim == 1 else select_rows(arrays[0], rows)
        # a copy for each client, because vmap uses other kernels, with other bits, for a shared point
        X = X.expand(len(rows), -1).contiguous()
        results: list[tuple[Any, ...]] = []
        first = 0
        for k, form in enumerate(forms):
            part = slice(first, first + form.rows)
            first += form.rows
            piece = (A[:, part].reshape(len(rows), form.rows, *self.net.options.shape), b[:, part], w[:, part])
            results.append(self.one_pass(form, X, *piece, seed_of_piece(seed, k)))
        # added up piece by piece from the first, as for a client alone: any other order has other bits
        f, scores, *parts = results[0]
        for more, _, *others in results[1:]:
            f = f + more
            parts = [part + other for part, other in zip(parts, others, strict=True)]
        if len(results) > 1:
            scores = self.torch.cat([result[1] for result in results], 1)
        return [f[:count], scores[:count], *(part[:count] for part in parts)]

    def one_pass(self, form: PassForm, X: Any, samples: Any, b: Any, w: Any, seed: Any) -> tuple[Any, ...]:
        """Compute one pass over clients at X (g, n), with samples (g, k, …), b and w (g, k), and seeds (g,).

        Return f (g,), scores (g, k, …) and, in a pass with gradients, those of each parameter (g, …).
        """
        if form not in self.passes:
            self.passes[form] = self.make_pass(form)
        if self.net.options.loss.targets == "classes":
            b = b.to(self.torch.int64)
        if self.net.options.integers:
            samples = samples.to(self.torch.int64)
        return self.passes[form](X, samples, b, w, seed)

    def fall_back(self, form: PassForm) -> bool:
        """Compute passes of a form without ``torch_channels`` from now on; return whether that changes anything."""
        if form in self.without_channels or not torch_channels.suits(self.net):
            return False
        self.without_channels.add(form)
        self.passes.pop(form, None)
        return True

    def make_pass(self, form: PassForm) -> Callable[..., tuple[Any, ...]]:
        """Return the function of a pass: arrays of a group -> f, scores and gradients."""
        net, torch = self.net, self.torch
        constants = net.constants_in(form.dtype)
        channels = torch_channels.suits(net) and form not in self.without_channels

        def loss(P: dict[str, Any], samples: Any, b: Any, w: Any, seed: Any) -> tuple[Any, Any]:
            net.norms.set_mode(net.module, form.train)
            with torch_channels.channels_last(channels):
                value, scores = net.loss(P, constants | dict.fromkeys(net.masks, seed), samples, b, w)
            if form.ridge:
                value = value + net.options.lam / 2 * sum(p.square().sum() for p in P.values() if p.ndim > 1)
            return value, scores

        batched_loss = torch.func.vmap(loss)

        def run_pass(X: Any, *arrays: Any) -> tuple[Any, ...]:
            with torch.set_grad_enabled(form.gradient):
                P = {name: part.detach().requires_grad_(form.gradient) for name, part in net.split(X).items()}
                f, scores = batched_loss(P, *arrays)
                if not form.gradient:
                    return f, scores
                # clients share no parameter: the gradient of the sum by the parameters of one is its own gradient
                parts = torch.autograd.grad(f.sum(), list(P.values()), materialize_grads=True)
            return f.detach(), scores.detach(), *parts

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
