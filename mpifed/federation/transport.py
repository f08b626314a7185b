"""How requests reach the hosts: what every transport does, and the one for a host in the same process."""

from typing import Protocol

from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, Request, protected
from mpifed.federation.sums import finish


class Traffic:
    """What a rank sent to other ranks and received from them, and the seconds that this took.

    ``shared`` are the bytes of memory that it shares with the ranks of its machine.
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
    """Carries requests to the hosts and their replies back."""

    report: HostReport  # of the last request, of all hosts together
    mpi: float  # seconds that the server spent in MPI for the last request
    traffic: Traffic

    @property
    def reduction(self) -> str:
        """How sums reached the server."""

    def send(self, request: Request) -> Reply: ...

    def complaint(self) -> Exception:
        """The error of a host that failed in the last request."""

    def stop(self, collect: bool = True) -> None:
        """Let the hosts go; with ``collect`` they will be asked what they did."""


class InProcess:
    """Server and clients in one process."""

    reduction = "in one process"

    def __init__(self, host: Host) -> None:
        self.host = host
        self.traffic = Traffic()
        self.mpi = 0.0
        self.report = HostReport()

    def send(self, request: Request) -> Reply:
        request.args = tuple([protected(value) for value in request.args])
        request.each = protected(request.each)
        reply, self.report = self.host.handle(request)
        reply.rows = finish(request, reply.rows, self.host.tree)
        return reply

    def complaint(self) -> Exception:
        raise AssertionError("in one process an error needs no carrying")

    def stop(self, collect: bool = True) -> None:
        """Nothing to stop."""
