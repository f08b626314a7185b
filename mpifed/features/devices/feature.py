"""Kernels on a device: samples and state of clients are tensors of PyTorch."""

from collections.abc import Iterator

from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.devices.device_host import DeviceHost
from mpifed.features.feature import Feature, MakeHost
from mpifed.features.settings import DEVICES
from mpifed.federation.host import Host
from mpifed.federation.setup import Setup
from mpifed.kernels.torch_device import device


class Devices(Feature):
    """Samples and state as tensors on a device."""

    # Tensors hold the same numbers and sums run along the same tree. What cannot compute there does not keep it.
    keeps = Keeps.EVERYTHING

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
