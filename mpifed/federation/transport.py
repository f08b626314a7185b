"""How requests reach the hosts: the protocol, and hosts in the same process."""

from __future__ import annotations

from typing import Protocol

from mpifed.core.typing import Array
from mpifed.federation.host import Host
from mpifed.federation.request import Reply, Request
from mpifed.federation.sums import finish


class Transport(Protocol):
    """Carries requests to the hosts and their replies back."""

    seconds: Array  # (hosts, SPENT) of the last request: see Host.handle
    mpi: float  # seconds the server spent in MPI for the last request

    def send(self, request: Request) -> Reply: ...

    def complaint(self) -> Exception: ...


class InProcess:
    """One process holds server and clients."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.complaint = Exception  # errors need no carrying
        self.seconds, self.mpi = host.spent[None], 0.0

    def send(self, request: Request) -> Reply:
        reply = self.host.handle(request)
        return reply._replace(rows=finish(request, reply.rows, self.host.tree))
