"""Kernels on a device: what they cannot compute."""

from collections.abc import Iterator

from mpifed.data.base import Dataset
from mpifed.features.devices.device_host import DeviceHost
from mpifed.features.feature import Feature, MakeHost
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.host import Host
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs
from mpifed.kernels.torch_device import device


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
    sparse = False
    kernels = ""

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        self.sparse = data.sparse
        return setup

    def hosts(self, kernels: str) -> MakeHost | None:
        # a study may leave open what computes: then this is known only when the ranks have looked for GPUs
        self.kernels = kernels
        return on_this_device if kernels in DEVICES else None

    def notes(self) -> Iterator[str]:
        if self.sparse and self.kernels == "cuda":
            yield (
                "sparse products on a GPU were not tested: the last bits of this run may depend on the number of ranks"
            )


def on_this_device(setup: Setup, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """A host whose clients are tensors on the device of this rank."""
    return DeviceHost(setup, data, *clients, device(setup.kernels), cohort)
