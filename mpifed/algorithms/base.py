"""What an algorithm is: a server that calls and clients that answer."""
from __future__ import annotations

from typing import Any, ClassVar

from mpifed.component import Component
from mpifed.data.clients import Array
from mpifed.federation import Federation
from mpifed.local import Local


class Algorithm(Component):
    """A federated algorithm; its fields are the hyper-parameters.

    ``join`` gives clients their first state and ``start`` the server's, with the model in field ``x``; ``round`` is one
    communication round. Client methods are called as method(f, client, *args) and return the new state of those
    clients and what they upload: an array or a tuple of arrays with the clients in front, or None. State goes in and
    comes out; nothing is set on the algorithm.
    """

    choices: ClassVar[dict[str, str]] = {
        "fedgia": "mpifed.algorithms.fedgia:FedGiA",
        "fedadmm": "mpifed.algorithms.fedadmm:FedADMM",
        "fedavg": "mpifed.algorithms.fedavg:FedAvg",
        "fedprox": "mpifed.algorithms.fedprox:FedProx",
        "fedpd": "mpifed.algorithms.fedpd:FedPD",
    }
    default: ClassVar[str] = "fedgia"

    draws: ClassVar[int] = 1  # how often a round selects clients
    watches: ClassVar[tuple[str, ...]] = ()  # names of what ``watch`` gives

    def needs(self) -> tuple[str, ...]:
        """What it asks of a problem beside value and gradient: names of methods."""
        return ()

    def join(self, f: Local) -> Any:
        """The first state of clients: a NamedTuple of arrays with the clients in front."""
        raise NotImplementedError

    def start(self, fed: Federation) -> Any:
        """The first state of the server: a NamedTuple with the model ``x`` (n,)."""
        raise NotImplementedError

    def round(self, fed: Federation, server: Any) -> Any:
        """One communication round."""
        raise NotImplementedError

    def watch(self, f: Local, client: Any) -> tuple[Array, ...]:
        """The numbers ``watches`` of each client, (c,) each: added up at every measurement, charged to nobody."""
        return ()

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        """What goes into the record of the round: of the server, and of the sums ``watched`` over all m clients."""
        return watched
