"""Base of methods without a server, whose clients are nodes of a graph with a model each."""

from typing import Annotated, Any, ClassVar

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Local, to_tune
from mpifed.algorithms.parts.step_sizes import Rate
from mpifed.federation.method import ServerState
from mpifed.federation.peers.graph_federation import GraphFederation as GraphFederation
from mpifed.federation.traits import Max, Participation, RecordValues, Sum, Unsupported

GraphStepSize = Annotated[Rate | None, to_tune("step size γ (default: (1 + λ)/(2 max r_i))")]


class GraphAlgorithm(Algorithm):
    """Base of methods on a graph, whose rounds use ``net.local``, ``net.mix``, ``net.add`` and ``net.gather`` only.

    ``init_client`` returns the first state of nodes, with their models in its field ``x`` (c, n). The state at rank 0
    that ``init_server`` returns holds numbers that all nodes know, and a field ``x`` (n,) in which rank 0 puts the mean
    model for the record; ``round`` neither reads nor sets it. Client methods return the new state and None. [selection]
    needs no place here, because all nodes work in every round: ``participation`` is Participation.ALL, or SELECTED
    where some are selected.

        >>> class Node(NamedTuple):
        ...     x: mpifed.extend.Array
        >>> class Mixing(mpifed.extend.GraphAlgorithm):
        ...     def init_client(self, f):
        ...         return Node(f.initial())
        ...     def init_server(self, net):
        ...         return Node(net.initial())
        ...     def round(self, net, server):
        ...         net.mix("x", self.step)
        ...         return server
        ...     def step(self, f, client, mixed):
        ...         return Node(mixed - 0.01 * f.grad(client.x)), None
        >>> mpifed.run(algorithm=Mixing(), graph="ring", rounds=3).cr
        3
    """

    on_graph = True
    asynchronous = Unsupported("its nodes wait for their neighbours")
    participation = Participation.ALL
    fixed_weights: ClassVar[str] = ""  # why W must be the same in all rounds, where it must

    def model(self, f: Local, client: Any) -> Array:
        """Return the nodes' models: (c, n)."""
        return client.x

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        """Return ‖x_i − x‖² of each node, x the mean model."""
        difference = self.model(f, client) - x
        square = f.xp.vecdot(difference, difference)
        return {"consensus": Sum(square), "consensus_max": Max(square)}

    def report(self, server: ServerState, row: dict[str, float], m: int) -> dict[str, float]:
        return {"consensus": row["consensus"] / m, "consensus_max": row["consensus_max"]}
