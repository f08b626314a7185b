"""Trees of ranks along which replies climb to rank 0: who sends to whom, and which vectors are added where.

``star``: all ranks send to rank 0. ``tree``: a binomial tree. ``nodes``: a binomial tree of the ranks of each node, and
one of the first ranks of the nodes. Rank 0 is the server and has no clients.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpifed.federation.sums import Node, merge

ALL: Node = (-1, 0)  # all clients of a rank, where a sum may take any order

Merge = Callable[[dict[Node, int], dict[Node, int]], list[tuple[int, int]]]


class Stop(NamedTuple):
    """What a rank does: it receives from its children in turn, adds, and sends to its parent.

    Vectors are numbered: first the ``own`` of this rank, then those of the first child and so on, then those ``sent``.
    An addition is the numbers of a left and a right vector and of their sum, a copy those of a vector and its copy.
    """

    own: int
    children: list[tuple[int, int]]  # rank, and number of vectors that it sends
    additions: list[list[tuple[int, int, int]]]  # after the message of each child
    copies: list[tuple[int, int]]  # of what is sent on as it came
    sent: list[Node]  # the subtrees whose sums are sent, in client order


class Route:
    """A tree of ranks, by the parent of each, for vectors of the subtrees ``own[r]`` on each rank r."""

    def __init__(self, parents: Sequence[int], own: Sequence[Sequence[Node]], merge: Merge = merge) -> None:
        self.parents = parents
        self.own = own
        self.merge = merge
        self.children: list[list[int]] = [[] for _ in parents]
        for rank in range(1, len(parents)):
            self.children[parents[rank]].append(rank)
        self.height = [0] * len(parents)
        for rank in self.upwards():
            # low subtrees are ready first, so nobody waits for a deep one while others are there; of equal ones the
            # lower rank comes first, so that every rank works out the same order
            self.children[rank].sort(key=lambda child: (self.height[child], child))
            self.height[rank] = 1 + max((self.height[child] for child in self.children[rank]), default=0)
        self.stops: dict[int, Stop] = {}

    def upwards(self) -> list[int]:
        """All ranks, each after its children."""
        order = [0]
        # the list grows while it is walked: first parents, then children, and turned round the other way
        for rank in order:
            order += self.children[rank]
        return order[::-1]

    def stop(self, rank: int) -> Stop:
        """What a rank does; it depends on the ranks below alone."""
        if rank not in self.stops:
            # who adds what is worked out once, so that a message costs neither a look-up nor a copy
            count = len(self.own[rank])
            held = {node: number for number, node in enumerate(self.own[rank])}
            children = []
            pairs = []
            for child in self.children[rank]:
                arrived = {node: number for number, node in enumerate(self.stop(child).sent, count)}
                children.append((child, len(arrived)))
                pairs.append(self.merge(held, arrived))
                count += len(arrived)
            # in client order, because the parent merges neighbours: sums of two halves of a node of the fixed tree
            sent = sorted(held, key=first)
            places = {held[node]: number for number, node in enumerate(sent, count)}
            additions, added = placed(pairs, places)
            copies = [(number, place) for number, place in places.items() if number not in added]
            self.stops[rank] = Stop(len(self.own[rank]), children, additions, copies, sent)
        return self.stops[rank]


def placed(
    pairs: list[list[tuple[int, int]]], places: dict[int, int]
) -> tuple[list[list[tuple[int, int, int]]], dict[int, int]]:
    """The additions with the number of each sum, and where a sum is found: at the later of its vectors' numbers.

    Where ``places`` has another number for it, the sum goes there, and later additions find it there.
    """
    found: dict[int, int] = {}
    result = []
    for some in pairs:
        steps = []
        for a, b in some:
            # of two vectors the later one comes from a child, into a buffer that nobody reads again: sums may overwrite
            # it, and never the rank's own rows, which belong to the method
            later = max(a, b)
            place = places.get(later, later)
            steps.append((found.get(a, a), found.get(b, b), place))
            found[later] = place
        result.append(steps)
    return result, found


def first(node: Node) -> int:
    """The first client of a subtree."""
    level, index = node
    # a node of level l spans 2^l clients; that of ALL is −1, and a rank has no other
    return index << max(level, 0)


def pile(held: dict[Node, int], arrived: dict[Node, int]) -> list[tuple[int, int]]:
    """As ``merge``, where each rank has one vector for all its clients: each that arrives is added to the one held."""
    additions = []
    for node, number in arrived.items():
        if node in held:
            additions.append((held[node], number))
        held[node] = number
    return additions


def tree(nodes: Sequence[int]) -> list[int]:
    """The parents in a binomial tree: host h sends to host h & (h - 1), and those of a power of two to rank 0.

    Here and below ``nodes`` has the node of every rank.
    """
    # The lowest bit of h is cleared. So hosts meet as the clients do in the tree of a sum, and few partial sums are
    # left to send on; and rank 0, which has no clients, is nobody's child.
    return [0, *binomial(range(1, len(nodes)), 0)]


def two_level(nodes: Sequence[int]) -> list[int]:
    """The parents in binomial trees of the ranks of each node, whose first ranks form another one."""
    groups: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes):
        groups.setdefault(node, []).append(rank)
    firsts = [ranks[0] for ranks in groups.values()]
    parents = dict(zip(firsts, binomial(firsts, 0), strict=True))
    # the node of rank 0 comes first. Rank 0 has no clients and tops the tree of the firsts already, so that the other
    # ranks of its node form one below it, in which it has no place of its own
    server, *others = groups.values()
    parents |= zip(server[1:], binomial(server[1:], 0), strict=True)
    for ranks in others:
        parents |= zip(ranks[1:], binomial(ranks, ranks[0])[1:], strict=True)
    return [parents[rank] for rank in range(len(nodes))]


def binomial(ranks: Sequence[int], top: int) -> list[int]:
    """The parents of ``ranks``: of the h-th the one at h & (h - 1), where that is 0 ``top``."""
    return [ranks[h & (h - 1)] if h & (h - 1) else top for h in range(len(ranks))]


SHAPES = {"star": lambda nodes: [0] * len(nodes), "tree": tree, "nodes": two_level}
