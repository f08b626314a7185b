"""A network that is called again must give the same: no memory, no draws in evaluation, no samples that it changes."""

import copy
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.networks.torch_function import Function
from mpifed.networks.torch_losses import written

SAMPLES = 3
APART = 0.05  # distance of random parameters from the first ones, which may be zeros
LAST_BITS = 8  # units in the last place
NETWORK = "the network of the problem"


def refuse_other_scores(net: Function) -> None:
    """UserError where scores of the same samples depend on earlier calls, or in evaluation on random numbers."""
    rng = stream(0, "again")
    like = net._zeros(SAMPLES)
    A = rng.integers(0, 2, like.shape) if net.options.integers else rng.standard_normal(like.shape)
    samples = net.torch.tensor(A, dtype=like.dtype)
    try:
        for train in (False, True):
            net.norms.mode(net.module, train)
            for masked in net.masks.values():
                masked.layer.eval()  # its masks are functions of the number of a call in a pass
            tried(net, Calls(net, samples, rng), train)
    finally:
        net.norms.mode(net.module, False)


class Calls:
    """Calls of a copy of a network, which counts and remembers apart from it, at random parameters."""

    def __init__(self, net: Function, samples: Any, rng: np.random.Generator) -> None:
        self.net = net
        try:
            self.module = copy.deepcopy(net.module)
        except Exception:  # a module may hold anything, also what cannot be copied
            self.module = net.module
        self.samples = samples
        real = samples.dtype if samples.is_floating_point() else net.trial.dtype
        flat = net.torch.tensor(net.start + APART * rng.standard_normal(len(net.start)), dtype=real)
        fixed = {name: value.to(real) if value.is_floating_point() else value for name, value in net.constants.items()}
        self.P = net.split(flat) | fixed
        self.given = samples

    def scores(self, seed: int) -> Any:
        self.given = self.samples.clone()
        with self.net.seeded(seed), self.net.torch.no_grad():
            return self.net.forward(self.module, self.P, (self.given,))

    def numbers(self) -> dict[str, Any]:
        """The numbers among the attributes of the module and its parts, by name."""
        return {
            f"{front}.{name}".removeprefix("."): value
            for front, part in self.module.named_modules()
            for name, value in vars(part).items()
            if is_number(value, int | float | np.number)
        }


def tried(net: Function, calls: Calls, train: bool) -> None:
    """Call a network twice in one mode."""
    before = calls.numbers()
    try:
        first, again, other = (calls.scores(seed) for seed in (0, 0, 1))
    except Exception:  # the user's code may raise anything; what raises it in a run is told then
        return
    if written(calls.given, calls.samples):
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


def differ(net: Function, first: Any, second: Any) -> bool:
    """Whether scores are apart by more than rounding; what is not finite says nothing."""
    least = LAST_BITS * net.torch.finfo(first.dtype).eps * first.abs().max()
    return bool(((first - second).abs() > least).any())
