"""The stages of a run. A list that is empty is not called."""

from mpifed.federation.setup import Setup
from mpifed.federation.timing.schedule import Schedule
from mpifed.federation.wire.averages import AVERAGES, HostAverages, ServerAverages
from mpifed.federation.wire.compressed import COMPRESSED, HostCompression, ServerCompression
from mpifed.federation.wire.masked_sums import MASKS, HostMasks, ServerMasks
from mpifed.federation.wire.stage import WEIGHTED, HostStage, ServerStage, Weighted


def server_stages(setup: Setup, schedule: Schedule) -> list[ServerStage]:
    """The server's sides of the stages of a run; none without [compress], [masks], [asynchronous] and weights."""
    found: list[ServerStage] = [*schedule.stages]
    if averaged(setup):
        found.append(ServerAverages(setup))
    if setup.compress is not None:
        found.append(ServerCompression(setup, setup.compress))
    if setup.masks is not None:
        found.append(ServerMasks(setup, setup.masks, schedule))
    return found


def host_stages(setup: Setup, count: int) -> dict[str, HostStage]:
    """The hosts' sides by name, for ``count`` clients of a host."""
    found: dict[str, HostStage] = {WEIGHTED: Weighted()}
    if averaged(setup):
        found[AVERAGES] = HostAverages(setup)
    if setup.compress is not None:
        found[COMPRESSED] = HostCompression(setup, setup.compress, count)
    if setup.masks is not None:
        found[MASKS] = HostMasks(setup, setup.masks)
    return found


def averaged(setup: Setup) -> bool:
    """Whether means of uploads have weights of clients."""
    return setup.factors is not None and setup.algorithm.upload.averaged
