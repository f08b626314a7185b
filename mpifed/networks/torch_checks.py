"""Checks of a network on random samples: is it a pure function, and do samples of a batch depend on one another?

A pure function has no memory, draws no random numbers in evaluation, and changes no samples. To see whether samples
depend on one another, some are computed alone, then before and behind different numbers of other samples with weight 0.
If f, ∇f or their scores change by more than rounding, the network can take neither padding nor a client in pieces. This
runs on the CPU and depends on the network alone, so that all ranks find the same.
"""

import copy
import itertools
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.kernels.torch_device import import_torch
from mpifed.networks.torch_function import ModuleFunction
from mpifed.networks.torch_losses import is_modified

SAMPLES = 3  # samples that are compared
DISTANCE = 0.05  # of random parameters from the initial ones, which may be zeros or switch parts of a network off
LAST_BITS = 8  # units in the last place that rounding may differ by
NETWORK = "the network of the problem"
SCORES = "the network makes the scores of a sample depend on the others in its batch"
LOSS = "the loss of a sample depends on the others in its batch"
BESIDE = 3  # samples beside those compared, twice as many in the longest batch


def refuse_impure(net: ModuleFunction) -> None:
    """Raise UserError if scores depend on earlier calls or, in evaluation, on random numbers."""
    rng = stream(0, "again")
    zeros = net._zeros(SAMPLES)
    A = rng.integers(0, 2, zeros.shape) if net.options.integers else rng.standard_normal(zeros.shape)
    samples = net.torch.tensor(A, dtype=zeros.dtype)
    try:
        for train in (False, True):
            net.norms.set_mode(net.module, train)
            for masked in net.masks.values():
                masked.layer.eval()  # its masks depend on how often it was called in a pass
            check_calls(net, NetworkCopy(net, samples, rng), train)
    finally:
        net.norms.set_mode(net.module, False)


class NetworkCopy:
    """A copy of a network at random parameters, so that calls leave the network itself as it was."""

    def __init__(self, net: ModuleFunction, samples: Any, rng: np.random.Generator) -> None:
        self.net = net
        try:
            self.module = copy.deepcopy(net.module)
        except Exception:  # a module may hold anything, such as a file that cannot be copied
            self.module = net.module
        self.samples = samples
        real = samples.dtype if samples.is_floating_point() else net.trial_output.dtype
        flat = net.torch.tensor(net.start + DISTANCE * rng.standard_normal(len(net.start)), dtype=real)
        fixed = {name: value.to(real) if value.is_floating_point() else value for name, value in net.constants.items()}
        self.P = net.split(flat) | fixed
        self.passed = samples

    def scores(self, seed: int) -> Any:
        """Return the scores of the samples, with PyTorch's generators at ``seed``."""
        self.passed = self.samples.clone()
        with self.net.seed_generators(seed), self.net.torch.no_grad():
            return self.net.forward(self.module, self.P, (self.passed,))

    def numbers(self) -> dict[str, Any]:
        """Return the numeric attributes of the module and its submodules, by name."""
        return {
            f"{front}.{name}".removeprefix("."): value
            for front, part in self.module.named_modules()
            for name, value in vars(part).items()
            if is_number(value, int | float | np.number)
        }


def check_calls(net: ModuleFunction, calls: NetworkCopy, train: bool) -> None:
    """Call a network several times in one mode; raise UserError if it is not a pure function."""
    before = calls.numbers()
    try:
        first, again, other = (calls.scores(seed) for seed in (0, 0, 1))
    except Exception:  # the user's code may raise anything; the run itself reports it
        return
    if is_modified(calls.passed, calls.samples):
        raise UserError(f"{NETWORK} must not change its samples in place: change a copy, as in x = x.clone()")
    changed = [name for name, value in calls.numbers().items() if before.get(name) != value]
    if changed:
        raise UserError(
            f"{NETWORK} must not change its attributes in a call, but it changes {', '.join(changed)}: f_i would "
            "depend on the order of the calls"
        )
    if differ(net, first, again):
        raise UserError(
            f"{NETWORK} gives other scores when it is called again with the same samples: f_i must be a function of x "
            "and the samples, so it must remember nothing, and draw from torch's generator alone"
        )
    if not train and differ(net, first, other):
        raise UserError(
            f"{NETWORK} draws random numbers in evaluation, and f_i would depend on them: write nn.Dropout(p), or "
            "F.dropout(x, p, self.training)"
        )


def differ(net: ModuleFunction, first: Any, second: Any) -> bool:
    """Return whether scores differ by more than rounding; values that are not finite are ignored."""
    tolerance = LAST_BITS * net.torch.finfo(first.dtype).eps * first.abs().max()
    return bool(((first - second).abs() > tolerance).any())


class MixingResult(NamedTuple):
    """The reason that a rehearsal found, empty if none, and whether all numbers were finite."""

    reason: str
    finite: bool


class WeightedBatch(NamedTuple):
    """Samples in one pass, of which those in ``rows`` have weights above 0."""

    samples: Any  # (k, …)
    b: Any  # (k,)
    rows: slice


def mixing_reason(net: ModuleFunction) -> str:
    """Return why the samples of a batch cannot be computed apart; empty if they can."""
    # restored afterwards: the caller may be in a pass, with some layers in training mode
    modes = [(part, part.training) for part in net.module.modules()]
    try:
        results = (rehearse(net, positive) for positive in (False, True))
        return next((result.reason for result in results if result and (result.reason or result.finite)), "")
    finally:
        for part, mode in modes:
            part.training = mode


def rehearse(net: ModuleFunction, positive: bool) -> MixingResult | None:
    """Rehearse with ``positive`` or any samples; return None if the network cannot take them.

    Double precision, in which convolutions on a CPU are slow, decides if single precision leaves a doubt.
    """
    # in single precision equal bits leave no doubt; in double precision rounding is far smaller than mixing
    single = rehearse_in_type(net, "float32", positive, exact=True)
    if single and not single.reason:
        return single
    return rehearse_in_type(net, "float64", positive) or (single and rehearse_in_type(net, "float32", positive))


def rehearse_in_type(net: ModuleFunction, dtype: str, positive: bool, exact: bool = False) -> MixingResult | None:
    """Rehearse in one type of numbers; return None if the network fails."""
    rehearsal = MixingRehearsal(net, dtype, positive, exact)
    try:
        reason = rehearsal.difference(False)
        if not reason and rehearsal.trains():
            reason = rehearsal.difference(True)
    except Exception:  # the user's code may raise anything; the run itself reports it
        return None
    return MixingResult(reason, rehearsal.finite())


class MixingRehearsal:
    """Batches of random samples at random parameters of a network, in a type of numbers.

    With ``positive`` all samples are positive. With ``exact`` batches of one size have to agree to the last bits.
    """

    def __init__(self, net: ModuleFunction, dtype: str, positive: bool, exact: bool) -> None:
        self.net = net
        self.dtype = getattr(net.torch, dtype)
        self.rng = stream(int(positive), "mixing")
        self.positive = positive
        self.exact = exact
        self.x = self.tensor(net.start + DISTANCE * self.rng.standard_normal(len(net.start)))
        self.w = self.tensor(self.rng.uniform(0.5, 1, SAMPLES))
        # behind and before, because a network may use the first sample of a batch; copies and more, because
        # it may use the mean or the size of its batch
        compared, first, second = (self.draw_samples(count) for count in (SAMPLES, BESIDE, BESIDE))
        copies = tuple(part[:1].expand(part.shape) for part in compared)
        self.batches = {
            "alone": self.batch([compared], 0),
            "behind": self.batch([compared, first], 0),
            "behind others": self.batch([compared, second], 0),
            "before": self.batch([first, compared], 1),
            "before others": self.batch([second, compared], 1),
            "copies": self.batch([compared, copies], 0),
            "more": self.batch([compared, first, second], 0),
        }
        self.cached: dict[tuple[str, bool, int], tuple[Any, ...]] = {}

    def draw_samples(self, count: int) -> tuple[Any, Any]:
        """Draw random samples and targets."""
        options = self.net.options
        shape = (count, *options.shape)
        A: Array = self.rng.uniform(0, 1, shape) if self.positive else self.rng.standard_normal(shape)
        if options.integers:
            A = self.rng.integers(0, 2, shape) * (not self.positive)
        b: Array = self.rng.standard_normal(count)
        if options.loss.targets == "classes":
            classes = self.net.output[1] if len(self.net.output) == 2 else 2
            b = self.rng.integers(0, max(2, classes), count)
        return self.tensor(A, options.integers), self.tensor(b, options.loss.targets == "classes")

    def tensor(self, values: Any, whole: bool = False) -> Any:
        """Return numbers as a tensor on the CPU, in the type of this rehearsal or as whole numbers."""
        torch = self.net.torch
        return torch.tensor(values, dtype=torch.int64 if whole else self.dtype)

    def batch(self, parts: list[tuple[Any, Any]], kept: int) -> WeightedBatch:
        """Join samples and targets; those of part ``kept`` have weights."""
        first = sum(len(part[1]) for part in parts[:kept])
        A, b = (self.net.torch.cat(part) for part in zip(*parts, strict=True))
        return WeightedBatch(A, b, slice(first, first + SAMPLES))

    def trains(self) -> bool:
        """Return whether the network differs in training mode, apart from dropout."""
        return find_difference(self.outputs("behind", True), self.outputs("behind", False), exact=True) != ""

    def finite(self) -> bool:
        """Return whether all outputs so far are finite."""
        return all(bool(part.isfinite().all()) for outputs in self.cached.values() for part in outputs)

    def difference(self, train: bool) -> str:
        """Return which outputs change when samples of weight 0 change; empty if none do.

        If a network draws random numbers, only batches of one size are compared, which have the same draws.
        """
        random = find_difference(self.outputs("alone", train), self.outputs("alone", train, seed=1), exact=True) != ""
        pairs = [("behind", "behind others", self.exact), ("before", "before others", self.exact)]
        if not random:
            pairs += [("alone", name, False) for name in self.batches]
        outputs = ((self.outputs(one, train), self.outputs(other, train), exact) for one, other, exact in pairs)
        return next(filter(None, itertools.starmap(find_difference, outputs)), "")

    def outputs(self, name: str, train: bool, seed: int = 0) -> tuple[Any, ...]:
        """Return f and ∇f of a batch, and the scores of its weighted samples: (scores, f, ∇f)."""
        key = (name, train, seed)
        if key not in self.cached:
            self.cached[key] = self.compute(self.batches[name], train, seed)
        return self.cached[key]

    def compute(self, batch: WeightedBatch, train: bool, seed: int) -> tuple[Any, ...]:
        """Compute (scores, f, ∇f) of a batch."""
        net = self.net
        w = self.w.new_zeros(len(batch.b))
        w[batch.rows] = self.w
        constants = {
            name: value.to(self.dtype) if value.is_floating_point() else value for name, value in net.constants.items()
        }

        def loss(x: Any) -> tuple[Any, Any]:
            return net.loss(net.split(x), constants, batch.samples, batch.b, w)

        with net.seed_generators(seed), net.torch.no_grad():
            net.norms.set_mode(net.module, train)
            for masked in net.masks.values():
                masked.layer.eval()  # its masks depend on positions in a batch
            g, (f, scores) = net.torch.func.grad_and_value(loss, has_aux=True)(self.x)
        return scores[batch.rows], f, g


def find_difference(first: tuple[Any, ...], second: tuple[Any, ...], exact: bool) -> str:
    """Return which of scores, f and ∇f differ by more than rounding; empty if none, or not finite.

    Batches of different sizes may differ by rounding in half of the digits of the scores' type.
    """
    eps = import_torch().finfo(first[0].dtype).eps
    tolerance = LAST_BITS * eps if exact else eps**0.5
    for a, b, reason in zip(first, second, (SCORES, LOSS, LOSS), strict=True):
        finite = a.isfinite().all() and b.isfinite().all()
        if finite and (a - b).abs().max() > tolerance * max(a.abs().max(), b.abs().max()):
            return reason
    return ""
