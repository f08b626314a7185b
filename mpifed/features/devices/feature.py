"""Kernels on a device: what they cannot compute."""

from mpifed.features.feature import Feature
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.traits import needs


def matrices(c: Experiment) -> Found:
    """The second derivatives that a method needs on a device."""
    second = [c.problem.offers[name].partition(";")[0] for name in ("hessian", "hess") if name in needs(c.algorithm)]
    return {"what": " and ".join(second)} if second and c.kernels in DEVICES else None


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.kernels in DEVICES and not c.problem.on_devices(),
        'kernels = "{kernels}" is wrong: {loss} does not compute with tensors on a device, so it must be "auto"',
    ),
    Rule(
        matrices,
        'kernels = "{kernels}" is wrong: {name} needs {what}, which are computed in memory alone, so it must be "auto"',
    ),
]


class Devices(Feature):
    """Samples and state as tensors on a device."""

    rules = RULES
