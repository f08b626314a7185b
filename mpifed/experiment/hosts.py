"""Hosts of clients, in memory or on a device."""

from mpifed.data.base import Dataset
from mpifed.experiment.kernels import device
from mpifed.federation.host import Host
from mpifed.federation.setup import Setup


def host_of(setup: Setup, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """The host of the clients lo <= i < hi, in memory or on the kernels' device; ``cohort``: how many a round calls."""
    where = device(setup.kernels)
    if where is None:
        return Host(setup, data, *clients)
    from mpifed.federation.device_host import DeviceHost

    return DeviceHost(setup, data, *clients, where, cohort)
