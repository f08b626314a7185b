"""Trees of ranks along which replies climb to rank 0, with the additions on each rank.

``star``: all ranks send to rank 0. ``tree``: a binomial tree. ``nodes``: a binomial tree of the ranks of each machine,
and one of the first ranks of machines. Rank 0 is the server and has no clients.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpifed.federation.sums import Subtree, merge

ALL: Subtree = (-1, 0)  # all clients of a rank, if the order of a sum is free

Merge = Callable[[dict[Subtree, int], dict[Subtree, int]], list[tuple[int, int]]]


class RankTask(NamedTuple):
    """The task of a rank on a route: it receives from its children in turn, adds, and sends to its parent.

    Vectors are numbered: first the ``own`` of this rank, then those of the first child and so on, then those ``sent``.
    An addition has the numbers of a left and a right vector and of their sum, a copy those of a vector and its copy.
    """

    own: int
    children: list[tuple[int, int]]  # (rank, number of vectors that it sends)
    additions: list[list[tuple[int, int, int]]]  # after the message of each child
    copies: list[tuple[int, int]]  # vectors that are sent on unchanged
    sent: list[Subtree]  # the subtrees whose sums are sent, in client order


class Route:
    """A tree of ranks, given by their parents, for sums of the subtrees ``own[r]`` on each rank r."""

    def __init__(self, parents: Sequence[int], own: Sequence[Sequence[Subtree]], merge: Merge = merge) -> None:
        self.parents = parents
        self.subtrees = own
        self.merge = merge
        self.children: list[list[int]] = [[] for _ in parents]
        for rank in range(1, len(parents)):
            self.children[parents[rank]].append(rank)
        self.height = [0] * len(parents)
        for rank in self.upwards():
            # low subtrees are ready first, so a rank receives them first; of equal ones the lower rank comes first, so
            # that all ranks find the same order
            self.children[rank].sort(key=lambda child: (self.height[child], child))
            self.height[rank] = 1 + max((self.height[child] for child in self.children[rank]), default=0)
        self.tasks: dict[int, RankTask] = {}

    def upwards(self) -> list[int]:
        """Return all ranks, each after its children."""
        order = [0]
        # the list grows in the loop: parents come before children, and reversed after them
        for rank in order:
            order += self.children[rank]
        return order[::-1]

    def task(self, rank: int) -> RankTask:
        """Return the task of a rank, which depends only on the ranks below it."""
        if rank not in self.tasks:
            # computed once, so that a message costs neither a look-up nor a copy
            count = len(self.subtrees[rank])
            held = {node: number for number, node in enumerate(self.subtrees[rank])}
            children = []
            pairs = []
            for child in self.children[rank]:
                arrived = {node: number for number, node in enumerate(self.task(child).sent, count)}
                children.append((child, len(arrived)))
                pairs.append(self.merge(held, arrived))
                count += len(arrived)
            # in client order, in which the parent merges siblings of the fixed tree
            sent = sorted(held, key=first_client)
            targets = {held[node]: number for number, node in enumerate(sent, count)}
            additions, summed = place_sums(pairs, targets)
            copies = [(number, target) for number, target in targets.items() if number not in summed]
            self.tasks[rank] = RankTask(len(self.subtrees[rank]), children, additions, copies, sent)
        return self.tasks[rank]


def place_sums(
    pairs: list[list[tuple[int, int]]], targets: dict[int, int]
) -> tuple[list[list[tuple[int, int, int]]], dict[int, int]]:
    """Return additions with the number of each sum, and the numbers of all sums.

    A sum takes the later of its vectors' numbers, or the number that ``targets`` has for that one.
    """
    numbers: dict[int, int] = {}
    result = []
    for some in pairs:
        steps = []
        for a, b in some:
            # the later vector is in a child's buffer, which may be overwritten; the rank's own rows belong to the
            # method
            later = max(a, b)
            target = targets.get(later, later)
            steps.append((numbers.get(a, a), numbers.get(b, b), target))
            numbers[later] = target
        result.append(steps)
    return result, numbers


def first_client(node: Subtree) -> int:
    """Return the first client of a subtree."""
    level, index = node
    # a node of level l spans 2^l clients; that of ALL is −1, and a rank has no other
    return index << max(level, 0)


def merge_single_vectors(held: dict[Subtree, int], arrived: dict[Subtree, int]) -> list[tuple[int, int]]:
    """Add each arrived vector to the one held, like ``merge``, if each rank has one vector for all its clients."""
    additions = []
    for node, number in arrived.items():
        if node in held:
            additions.append((held[node], number))
        held[node] = number
    return additions


def binomial_tree(nodes: Sequence[int]) -> list[int]:
    """Return parents in a binomial tree: host h sends to host h & (h - 1), or to rank 0 if that is 0.

    Here and below ``nodes`` has the machine of every rank.
    """
    # clearing the lowest bit of h pairs hosts as the tree of a sum pairs clients, which leaves few partial sums to
    # send on; rank 0 has no clients and is only the root
    return [0, *binomial_parents(range(1, len(nodes)), 0)]


def two_level_tree(nodes: Sequence[int]) -> list[int]:
    """Return parents in binomial trees of the ranks of each machine, whose first ranks form another tree."""
    groups: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes):
        groups.setdefault(node, []).append(rank)
    firsts = [ranks[0] for ranks in groups.values()]
    parents = dict(zip(firsts, binomial_parents(firsts, 0), strict=True))
    # the machine of rank 0 comes first; rank 0 is the root already, so the other ranks of its machine form a tree
    # below it
    server, *others = groups.values()
    parents |= zip(server[1:], binomial_parents(server[1:], 0), strict=True)
    for ranks in others:
        parents |= zip(ranks[1:], binomial_parents(ranks, ranks[0])[1:], strict=True)
    return [parents[rank] for rank in range(len(nodes))]


def binomial_parents(ranks: Sequence[int], top: int) -> list[int]:
    """Return parents of ``ranks``: that of the h-th is the one at h & (h - 1), or ``top`` if that is 0."""
    return [ranks[h & (h - 1)] if h & (h - 1) else top for h in range(len(ranks))]


SHAPES = {"star": lambda nodes: [0] * len(nodes), "tree": binomial_tree, "nodes": two_level_tree}
