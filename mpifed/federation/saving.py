"""The service by which each host writes its clients' state for a checkpoint, in client order, for any ranks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mpifed.core import checksummed
from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, ReplyLayout, Request


def make_save_service(host: Host, place: Callable[[int], Path]) -> Callable[[Request], tuple[Reply, HostReport]]:
    """Return the service that writes the state of a host's clients to ``place`` of a checkpoint's serial number.

    The reply is the system's error number, or 0.
    """

    def write_state(request: Request) -> tuple[Reply, HostReport]:
        error_number = 0
        # an exception would end all ranks; as a number the error reaches rank 0, which reports it
        try:
            checksummed.write(place(int(request.args[0])), host.export_state())
        except OSError as error:
            error_number = error.errno or 1
        return Reply(np.full((1, 1), error_number, host.dtype), ReplyLayout(((),))), HostReport()

    return write_state
