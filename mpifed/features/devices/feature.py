"""Feature of kernels on a device: samples and state of clients are tensors of PyTorch."""

from collections.abc import Iterator

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.devices.device_host import DeviceHost
from mpifed.features.feature import EnginePlugin, MakeHost
from mpifed.features.settings import DEVICES
from mpifed.federation.callback import Callback
from mpifed.federation.host import Host
from mpifed.federation.setup import RunSpec
from mpifed.kernels.torch_device import kernel_device


class DeviceKernels(EnginePlugin, Callback):
    """Samples and state as tensors on a device."""

    # Tensors hold the same numbers and sums run along the same tree. Parts that cannot compute there say so.
    supports = Supports.EVERYTHING

    sparse = False
    kernels = ""

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.sparse = data.sparse
        return setup

    def host_maker(self, kernels: str) -> MakeHost | None:
        # a study may leave kernels open: then they are known only once the ranks have looked for GPUs
        self.kernels = kernels
        return make_device_host if kernels in DEVICES else None

    def notes(self) -> Iterator[str]:
        if self.sparse and self.kernels == "cuda":
            yield (
                "sparse products on a GPU were not tested: the last bits of this run may depend on the number of ranks"
            )


def make_device_host(setup: RunSpec, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """Return a host whose clients are tensors on the device of this rank."""
    return DeviceHost(setup, data, *clients, kernel_device(setup.kernels), cohort)
