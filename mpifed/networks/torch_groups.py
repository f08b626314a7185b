"""Clients of a network in groups: torch.func.vmap computes many of them at once.

All clients of a group have the same number of samples; padding is a copy of a sample, with weight 0. A client has the
same bits in every group, because only those numbers of clients are used for which a rehearsal has shown it; a smaller
group repeats one of its clients. One ordinary backward pass of the sum of their losses gives the gradients of all:
clients share no parameter.

The rehearsal compares a group of all its clients on random samples with the same clients in another order, at other
addresses in memory, some with fewer samples; and with smaller groups. It depends on the network and on shapes alone, so
that all ranks find the same. For local steps it also takes the CPU time of a client in groups of several sizes, and
groups get the fastest of the sizes that give the same bits: ranks that choose otherwise still find the same. Alone a
client has other bits, so its time is told to the user, who may choose it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import error_line
from mpifed.core.streams import seed_of_piece, stream
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.networks import torch_channels
from mpifed.networks.torch_network import ClientSamples, Network

SHOWN = 8  # samples of a client in the rehearsal before round one; other numbers are rehearsed when they occur
COMPARED = 200_000  # gradient entries to compare, because rounding hides a difference in most of them
TURNS = 5  # passes of each size that are timed
LEAST_GAIN = 0.95  # of the time of a full group: smaller ones must take less, for times vary
SHIFT = 1  # entries by which arrays are moved in memory
GROUPED = "a rehearsal found the same bits for a client in every group"


class PassForm(NamedTuple):
    """A kind of pass over samples: its shapes, and what it computes."""

    rows: int  # samples of each client
    gradient: bool
    train: bool
    dtype: Any
    ridge: bool = False  # whether it includes the regulariser


class PassSeconds(NamedTuple):
    """Median CPU seconds of a client in groups of sizes that have the same bits, and alone."""

    grouped: dict[int, float]
    alone: float


class GroupRehearsal:
    """Tests, for passes of each form, which groups give each client the same bits; run when a form is first used.

    ``one_pass`` maps a form and the arrays of a group to the results of its clients, ``size`` is that of groups.
    ``fall_back`` switches failing passes of a form to a simpler way, and returns whether there was one.
    """

    def __init__(
        self, net: Network, one_pass: Callable[..., tuple[Any, ...]], size: int, fall_back: Callable[[PassForm], bool]
    ) -> None:
        self.net = net
        self.one_pass = one_pass
        self.size = size
        self.fall_back = fall_back
        self.draws = min(max(COMPARED // (size * max(1, len(net.start))), 1), 4)
        self.reasons: dict[PassForm, str] = {}
        self.fitting: dict[tuple[PassForm, int], bool] = {}
        self.seconds: dict[PassForm, PassSeconds] = {}

    def why(self, form: PassForm) -> str:
        """Return why passes of this form cannot be computed in groups; empty if they can."""
        if form not in self.reasons:
            self.reasons[form] = self._find_reason(form)
        return self.reasons[form]

    def best_size(self, form: PassForm) -> int:
        """Return how many clients are in a group: in local steps on a CPU as many as take the least time each."""
        # kernels on a GPU take no CPU time
        if not (form.train and form.gradient and self.net.device.type == "cpu"):
            return self.size
        if form not in self.seconds:
            self.seconds[form] = self._measure(form)
        grouped = self.seconds[form].grouped
        best = min(grouped, key=grouped.__getitem__)
        return best if grouped[best] < LEAST_GAIN * grouped[self.size] else self.size

    def _measure(self, form: PassForm) -> PassSeconds:
        """Return the median CPU seconds of a client in each way."""
        arrays = self.arrays(form, 0)
        x, A, b, w, seed = (part[0].numpy() for part in arrays)
        samples = ClientSamples(A.reshape(form.rows, -1), b, w)
        sizes = [size for size in (self.size, self.size // 2, self.size // 4) if size > 1 and self.fits(form, size)]
        ways: list[Callable[[], Any]] = [partial(self.one_pass, form, *cut_rows(arrays, slice(k))) for k in sizes]
        ways.append(partial(self.net.run, x, samples, True, int(seed), 0.1))
        # in turn, so that what else the machine does meets all of them
        turns = [[(way(), time.process_time())[1] for way in (lambda: None, *ways)] for _ in range(TURNS)]
        *grouped, alone = np.median(np.diff(turns), axis=0).tolist()
        return PassSeconds({size: part / size for size, part in zip(sizes, grouped, strict=True)}, alone)

    def describe(self, form: PassForm) -> str:
        """Return what was found and the times, as ``mpifed show`` says it."""
        size = self.best_size(form)
        if form not in self.seconds:
            return GROUPED
        grouped, alone = self.seconds[form]
        times = [f"{1e3 * part:.2g} ms in a group of {k}" for k, part in grouped.items() if k in (self.size, size)]
        advice = " (problem.batched = false, other last bits)" if alone < grouped[size] else ""
        takes = f"a gradient of {form.rows} samples takes {', '.join(times)}, {1e3 * alone:.2g} ms alone{advice}"
        return f"{GROUPED}; {takes}" + (f"; local steps take {size} at a time" if size < self.size else "")

    def fits(self, form: PassForm, count: int) -> bool:
        """Return whether a group of ``count`` clients gives the same bits as a full one."""
        if count == self.size:
            return True
        key = form, count
        if key not in self.fitting:
            self.fitting[key] = all(self._ignores_count(form, count, draw) for draw in range(self.draws))
        return self.fitting[key]

    def _ignores_count(self, form: PassForm, count: int, draw: int) -> bool:
        """Return whether all clients of a full group have the same bits in groups of ``count``."""
        arrays = self.arrays(form, draw)
        full = self.one_pass(form, *arrays)
        # the last part begins earlier, so that each has ``count`` clients: some clients are compared twice
        starts = [min(first, self.size - count) for first in range(0, self.size, count)]
        parts = [slice(first, first + count) for first in starts]
        return all(bits_of(self.one_pass(form, *cut_rows(arrays, at))) == bits_of(cut_rows(full, at)) for at in parts)

    def _find_reason(self, form: PassForm) -> str:
        """Return what goes wrong with a full group; empty if nothing does."""
        # first with the fast functions, then without them, as long as ``fall_back`` finds something to leave out
        wrong = "the last bits of a client depend on its place in a group"
        try:
            if all(self._ignores_position(form, draw) for draw in range(self.draws)):
                return ""
        except Exception as error:  # the user's code may raise anything
            wrong = f"torch.func.vmap cannot compute the network: {error_line(error)}"
        return self._find_reason(form) if self.fall_back(form) else wrong

    def _ignores_position(self, form: PassForm, draw: int) -> bool:
        """Return whether clients have the same bits at other positions, beside clients with fewer samples."""
        torch = self.net.torch
        # an odd step: kernels work on pairs and fours of clients, so every client changes its position in them
        compared = slice(0, self.size // 2)
        shift = self.size // 2 + 1
        arrays = self.arrays(form, draw)
        results = self.one_pass(form, *arrays)
        arrays[3][self.size // 2 :, form.rows // 2 :] = 0  # weights of clients that are not compared
        moved = self.one_pass(form, *(shift_in_memory(torch.roll(part, shift, 0)) for part in arrays))
        moved_back = tuple(torch.roll(part, -shift, 0) for part in moved)
        return bits_of(cut_rows(results, compared)) == bits_of(cut_rows(moved_back, compared))

    def arrays(self, form: PassForm, draw: int) -> list[Any]:
        """Draw random parameters, samples, targets, weights and seeds of a group."""
        net = self.net
        torch, count = net.torch, self.size
        # the same numbers on every rank, because all must choose the same groups
        rng = stream(draw, "rehearsal")
        floats = [
            net.start + 0.05 * rng.standard_normal((count, len(net.start))),
            rng.standard_normal((count, form.rows, *net.options.shape)) * (not net.options.integers),
            rng.standard_normal((count, form.rows)),
            rng.uniform(0.01, 1, (count, form.rows)),
        ]
        if net.options.loss.targets == "classes":
            classes = net.output[1] if len(net.output) == 2 else 1
            floats[2] = rng.integers(0, max(2, classes), (count, form.rows)).astype(float)
        arrays = [torch.from_numpy(part).to(net.device, form.dtype) for part in floats]
        return [*arrays, torch.from_numpy(rng.integers(0, 2**62, count)).to(net.device)]


def cut_rows(arrays: Sequence[Any], rows: slice) -> tuple[Any, ...]:
    """Return the rows of each array."""
    return tuple(part[rows] for part in arrays)


def shift_in_memory(values: Any) -> Any:
    """Return a copy of the values at another address in memory."""
    # by one entry, so that no cache line or register begins where it did before
    room = values.new_empty(values.numel() + SHIFT)
    return room[SHIFT:].view(values.shape).copy_(values)


def bits_of(arrays: Sequence[Any]) -> list[bytes]:
    """Return the bytes of each tensor: equal ones are equal to the last bit, NaN and the sign of zero included."""
    return [part.cpu().contiguous().numpy().tobytes() for part in arrays]


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
        # passes in which ``torch_channels`` fails or bits depend on positions
        self.without_channels: set[PassForm] = set()
        self.rehearsal = GroupRehearsal(net, self.one_pass, self.size, self.fall_back)
        self.reason = net.one_pass_reason if wanted else "problem.batched is false"

    def why(self, form: PassForm) -> str:
        """Return why clients are computed one at a time in passes of this form; empty if they are not."""
        return self.reason or self.rehearsal.why(form)

    def first_reason(self, n: int, dtype: Any) -> str:
        """Return why clients with n features are computed one at a time; empty if a rehearsal finds no reason."""
        return next(filter(None, map(self.why, self.first_forms(n, dtype))), "")

    def first_choice(self, n: int, dtype: Any) -> tuple[int, str]:
        """Return how many clients with n features are in a full group, on which bits depend, and why."""
        reason = self.first_reason(n, dtype)
        form = self.first_forms(n, dtype)[0]
        if reason:
            return 1, reason
        return self.size, self.rehearsal.describe(form)

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
        if any(self.rehearsal.why(form) for form in set(forms)):
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
                    before = models if models.ndim == 1 else models[own]
                    self.write(found[own], parts, before, None if rates is None else rates[own])
        f, scores = values[0] if len(values) == 1 else map(self.torch.cat, zip(*values, strict=True))
        return GroupResult(f, found, scores)

    def write(self, into: Any, parts: list[Any], X: Any, rates: Any) -> None:
        """Write gradients by parameter (k, …) into rows (k, n), or with ``rates`` (k, 1) X minus their multiples."""
        views = list(self.net.split(into).values())
        if rates is None:
            self.torch._foreach_copy_(views, parts)
            return
        # not in place: autograd may return one tensor for two parameters, or one number for many entries
        for view, part in zip(views, parts, strict=True):
            self.torch.mul(part, rates.view(-1, *[1] * (part.ndim - 1)), out=view)
        self.torch.sub(X, into, out=into)  # rounded twice, as by SGD, so that a client has the same bits alone

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
        size = min(map(self.rehearsal.best_size, forms), default=self.size)
        for first in range(0, c, size):
            rows = list(range(first, min(first + size, c)))
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
        """Return f (g,), scores (g, k, …) and gradients by parameter of clients at X (g, n), with b and w (g, k)."""
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
