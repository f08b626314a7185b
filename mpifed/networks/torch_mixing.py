"""A rehearsal of networks that mix the samples of a batch: does what is found of a sample depend on those beside it?

Some random samples are computed alone, then before and behind other numbers of others with weight 0, of other values.
Where f, ∇f or their scores change by more than rounding, the network takes neither padding nor a client in pieces. What
is rehearsed, on the CPU, depends on the network alone, so that all ranks find the same.
"""

from typing import Any, NamedTuple

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.kernels.torch_device import pytorch
from mpifed.networks.torch_function import Function

SCORES = "the network makes the scores of a sample depend on the others in its batch"
LOSS = "the loss of a sample depends on the others in its batch"
KEPT = 3  # samples that are compared
BESIDE = 3  # others beside them, twice as many in the longest batch
APART = 0.05  # distance of random parameters from the first ones, at which parts of a network may be switched off
LAST_BITS = 8  # units in the last place


class Found(NamedTuple):
    """What a rehearsal found, and whether all numbers were finite: those that are not show nothing."""

    reason: str
    finite: bool


class Batch(NamedTuple):
    """Samples in one pass, of which those in ``rows`` have weights."""

    samples: Any  # (k, …)
    b: Any  # (k,)
    rows: slice


def reason(net: Function) -> str:
    """Why the samples of a batch cannot be computed apart; empty where they can."""
    # a pass may be under way, in which some layers train and others do not
    modes = [(part, part.training) for part in net.module.modules()]
    try:
        kinds = (rehearsed(net, positive) for positive in (False, True))
        return next((found.reason for found in kinds if found and (found.reason or found.finite)), "")
    finally:
        for part, mode in modes:
            part.training = mode


def rehearsed(net: Function, positive: bool) -> Found | None:
    """What samples of one kind show; None where the network cannot take them.

    Double precision, in which convolutions on a CPU are slow, decides where single precision leaves a doubt.
    """
    # single precision answers first, where equal bits leave no doubt; in double precision rounding is far below mixing
    first = attempted(net, "float32", positive, exact=True)
    if first and not first.reason:
        return first
    return attempted(net, "float64", positive) or (first and attempted(net, "float32", positive))


def attempted(net: Function, dtype: str, positive: bool, exact: bool = False) -> Found | None:
    """The same in one type of numbers."""
    rehearsal = Rehearsal(net, dtype, positive, exact)
    try:
        reason = rehearsal.difference(False)
        if not reason and rehearsal.trains():
            reason = rehearsal.difference(True)
    except Exception:  # the user's code may raise anything; what raises it in a run is told then
        return None
    return Found(reason, rehearsal.finite())


class Rehearsal:
    """Batches of random samples, or of ``positive`` ones, at random parameters of a network, in a type of numbers.

    With ``exact`` batches of one size have to agree to the last bits, which is what they do without mixing.
    """

    def __init__(self, net: Function, dtype: str, positive: bool, exact: bool) -> None:
        self.net = net
        self.dtype = getattr(net.torch, dtype)
        self.rng = stream(int(positive), "mixing")
        self.positive = positive
        self.exact = exact
        self.x = self.tensor(net.start + APART * self.rng.standard_normal(len(net.start)))
        self.w = self.tensor(self.rng.uniform(0.5, 1, KEPT))
        # behind and before, because a network may look at the first sample of a batch alone; copies and more, because
        # one may use the mean or the size of its batch
        own, one, other = (self.drawn(count) for count in (KEPT, BESIDE, BESIDE))
        copies = tuple(part[:1].expand(part.shape) for part in own)
        self.batches = {
            "alone": self.batch([own], 0),
            "behind": self.batch([own, one], 0),
            "behind others": self.batch([own, other], 0),
            "before": self.batch([one, own], 1),
            "before others": self.batch([other, own], 1),
            "copies": self.batch([own, copies], 0),
            "more": self.batch([own, one, other], 0),
        }
        self.seen: dict[tuple[str, bool, int], tuple[Any, ...]] = {}

    def drawn(self, count: int) -> tuple[Any, Any]:
        """Random samples and targets."""
        options = self.net.options
        shape = (count, *options.shape)
        A: Array = self.rng.uniform(0, 1, shape) if self.positive else self.rng.standard_normal(shape)
        if options.integers:
            A = self.rng.integers(0, 2, shape) * (not self.positive)
        b: Array = self.rng.standard_normal(count)
        if options.loss.targets == "classes":
            most = self.net.output[1] if len(self.net.output) == 2 else 2
            b = self.rng.integers(0, max(2, most), count)
        return self.tensor(A, options.integers), self.tensor(b, options.loss.targets == "classes")

    def tensor(self, values: Any, whole: bool = False) -> Any:
        """Numbers on the CPU in the type of this rehearsal, or whole ones."""
        torch = self.net.torch
        return torch.tensor(values, dtype=torch.int64 if whole else self.dtype)

    def batch(self, parts: list[tuple[Any, Any]], kept: int) -> Batch:
        """Samples and targets one behind the other, of which those of part ``kept`` have weights."""
        first = sum(len(part[1]) for part in parts[:kept])
        A, b = (self.net.torch.cat(part) for part in zip(*parts, strict=True))
        return Batch(A, b, slice(first, first + KEPT))

    def trains(self) -> bool:
        """Whether the network computes something else in training mode, but for layers of dropout."""
        return differs(self.found("behind", True), self.found("behind", False), exact=True) != ""

    def finite(self) -> bool:
        """Whether all that was found is finite."""
        return all(bool(part.isfinite().all()) for found in self.seen.values() for part in found)

    def difference(self, train: bool) -> str:
        """What of the samples that have weights changes with those that have none; empty where nothing does.

        Where a network draws random numbers, batches of one size have the same.
        """
        random = differs(self.found("alone", train), self.found("alone", train, seed=1), exact=True) != ""
        pairs = [("behind", "behind others", self.exact), ("before", "before others", self.exact)]
        if not random:
            pairs += [("alone", name, False) for name in self.batches]
        told = (differs(self.found(one, train), self.found(other, train), exact) for one, other, exact in pairs)
        return next(filter(None, told), "")

    def found(self, name: str, train: bool, seed: int = 0) -> tuple[Any, ...]:
        """Scores of the samples that have weights, their f and ∇f."""
        key = (name, train, seed)
        if key not in self.seen:
            self.seen[key] = self._computed(self.batches[name], train, seed)
        return self.seen[key]

    def _computed(self, batch: Batch, train: bool, seed: int) -> tuple[Any, ...]:
        net = self.net
        w = self.w.new_zeros(len(batch.b))
        w[batch.rows] = self.w
        constants = {
            name: value.to(self.dtype) if value.is_floating_point() else value for name, value in net.constants.items()
        }

        def loss(x: Any) -> tuple[Any, Any]:
            return net.loss(net.split(x), constants, batch.samples, batch.b, w)

        with net.seeded(seed), net.torch.no_grad():
            net.norms.mode(net.module, train)
            for masked in net.masks.values():
                masked.layer.eval()  # its masks are functions of the place of a number in a batch
            g, (f, scores) = net.torch.func.grad_and_value(loss, has_aux=True)(self.x)
        return scores[batch.rows], f, g


def differs(first: tuple[Any, ...], second: tuple[Any, ...], exact: bool) -> str:
    """What of scores, f and ∇f is apart by more than rounding; empty where nothing is. What is not finite says nothing.

    Batches of different sizes may be rounded in half of the digits that the type of the scores has.
    """
    eps = pytorch().finfo(first[0].dtype).eps
    least = LAST_BITS * eps if exact else eps**0.5
    for a, b, told in zip(first, second, (SCORES, LOSS, LOSS), strict=True):
        finite = a.isfinite().all() and b.isfinite().all()
        if finite and (a - b).abs().max() > least * max(a.abs().max(), b.abs().max()):
            return told
    return ""
