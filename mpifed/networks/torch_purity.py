"""Checks that a network is a pure function: no memory, no random numbers in evaluation, no changed samples."""

import copy
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.networks.torch_function import ModuleFunction
from mpifed.networks.torch_losses import is_modified

SAMPLES = 3
DISTANCE = 0.05  # of random parameters from the initial ones, which may be zeros
LAST_BITS = 8  # units in the last place that rounding may differ by
NETWORK = "the network of the problem"


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
