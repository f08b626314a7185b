"""Hosts write checkpoints: each the state of its own clients, in client order, so that any ranks can go on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mpifed.core import checksummed
from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Layout, Reply, Request


def saving(host: Host, place: Callable[[int], Path]) -> Callable[[Request], tuple[Reply, HostReport]]:
    """The service that writes the state of all clients of a host to ``place`` of a checkpoint's serial number.

    The reply is the system's error number, or 0.
    """

    def saved(request: Request) -> tuple[Reply, HostReport]:
        arrays = dict(zip(host.state._fields, host.state, strict=True)) | {"compute seconds": host.seconds}
        for keeper in host.keepers:
            arrays |= keeper.saved()
        code = 0
        # an error here would end all ranks; as a number it travels to rank 0, which says what the disk refused
        try:
            checksummed.write(place(int(request.args[0])), {name: rows[host.slot] for name, rows in arrays.items()})
        except OSError as error:
            code = error.errno or 1
        return Reply(np.full((1, 1), code, host.dtype), Layout(((),))), HostReport()

    return saved
