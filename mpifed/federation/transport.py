"""The protocol of transports, which carry requests to hosts, and the transport for a host in the same process."""

from typing import Protocol

from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, Request, make_read_only
from mpifed.federation.sums import finish_reduction


class RankTraffic:
    """A count of the messages and bytes that a rank sent and received, and of the seconds that this took.

    ``shared`` is the memory in bytes that it shares with the ranks of its machine.
    """

    def __init__(self) -> None:
        self.calls = self.sent = self.received = self.messages = self.shared = 0
        self.comm = self.wait = 0.0

    def count(self, sent: int, received: int, messages: int = 0) -> None:
        """Count a call, or several that belong together: bytes sent, bytes and messages received."""
        self.calls += 1
        self.messages += messages
        self.sent += sent
        self.received += received


class Transport(Protocol):
    """A carrier of requests to the hosts and of their replies back."""

    report: HostReport  # of the last request, of all hosts together
    mpi: float  # seconds that the server spent in MPI for the last request
    traffic: RankTraffic

    @property
    def reduction(self) -> str:
        """Description of the ways by which sums reached the server."""

    def send(self, request: Request) -> Reply: ...

    def host_error(self) -> Exception:
        """Return the error of a host that failed in the last request."""

    def stop(self, collect: bool = True) -> None:
        """Release the hosts; with ``collect`` they report their traffic afterwards."""


class InProcess:
    """The transport for server and clients in one process."""

    reduction = "in one process"

    def __init__(self, host: Host) -> None:
        self.host = host
        self.traffic = RankTraffic()
        self.mpi = 0.0
        self.report = HostReport()

    def send(self, request: Request) -> Reply:
        request.args = tuple([make_read_only(value) for value in request.args])
        request.each = make_read_only(request.each)
        reply, self.report = self.host.handle(request)
        reply.rows = finish_reduction(request, reply.rows, self.host.tree)
        return reply

    def host_error(self) -> Exception:
        raise AssertionError("in one process an error needs no carrying")

    def stop(self, collect: bool = True) -> None:
        """Do nothing: there are no other ranks."""
