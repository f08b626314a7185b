"""What methods without a server share: clients are the nodes of a graph, and every node has a model of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mpifed.algorithms.base import Algorithm
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.network import Network


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class GraphMethod(Algorithm):
    """A method whose rounds use ``net.local``, ``net.mix``, ``net.add`` and ``net.gather`` only.

    ``join`` returns the first state of nodes, with their models in its field ``x``. The state at rank 0 that ``start``
    returns holds numbers that all nodes know, and a field ``x`` in which rank 0 puts the mean model for the record;
    ``round`` neither reads nor sets it. Client methods return the new state and None. [selection] needs no place here,
    because all nodes work in every round; a method that selects some sets ``selections``.
    """

    graph: ClassVar[bool] = True
    synchronous: ClassVar[str] = "its nodes wait for their neighbours"
    selections: ClassVar[int] = 0
    extremes: ClassVar[tuple[str, ...]] = ("consensus_max",)

    @abstractmethod
    def start(self, net: Network) -> Any:
        """The first state of rank 0: a NamedTuple with the model ``x`` (n,)."""
        raise NotImplementedError

    @abstractmethod
    def round(self, net: Network, server: Any) -> Any:
        """One round of all nodes."""
        raise NotImplementedError

    @property
    def watches(self) -> tuple[str, ...]:
        return ("consensus",)

    def model(self, f: Local, client: Any) -> Array:
        """The nodes' models: (c, n)."""
        x: Array = client.x
        return x

    def watch(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """‖x_i − x‖² of each node, x the mean model."""
        difference = self.model(f, client) - x
        return (np.vecdot(difference, difference),)

    def extreme(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        return self.watch(f, client, x)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return {"consensus": watched["consensus"] / m, "consensus_max": watched["consensus_max"]}
