"""Trees of ranks along which replies climb to rank 0, with the additions on each rank, and the messages of them.

``star``: all ranks send to rank 0. ``tree``: a binomial tree. ``nodes``: a binomial tree of the ranks of each machine,
and one of the first ranks of machines. Rank 0 is the server and has no clients.
"""

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import NUMBERS, HostReport, add_report
from mpifed.federation.sums import Subtree, merge
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.plan import BIG

ALL: Subtree = (-1, 0)  # all clients of a rank, if the order of a sum is free

Merge = Callable[[dict[Subtree, int], dict[Subtree, int]], list[tuple[int, int]]]
# The report is in front of the vectors, in the same message, so that it costs no second one, and seconds, faults and
# signals of all hosts are known together with the sum.
FRONT = struct.Struct(f"={NUMBERS}d")
REPORT = FRONT.size
TAG = 2  # MPI's tag of these messages


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


class TreeMessages:
    """The messages of this rank on a route, for vectors of ``columns`` numbers, in buffers that are made once.

    ``add`` adds two vectors. A message of more than BIG bytes travels as two, the report and the vectors.
    """

    def __init__(
        self, comm: Any, traffic: RankTraffic, route: Route, columns: int, dtype: Any, add: Any = np.add
    ) -> None:
        self.comm = comm
        self.traffic = traffic
        self.add = add
        self.columns = columns
        self.dtype = np.dtype(dtype)
        self.task = route.task(comm.rank)
        self.parent = route.parents[comm.rank]
        self.top = comm.rank == 0
        up = 0 if self.top else len(self.task.sent)
        size = columns * self.dtype.itemsize
        # long vectors to which nothing is added are not copied: they are sent from their own memory, and the sum of a
        # single child is received in its final memory
        self.sends_rows = up * size > BIG and not self.task.children
        self.receives_sum = self.top and len(self.task.children) == 1 and size > BIG
        # buffers live as long as the plan, because new memory would cost every message page faults
        message, self.report, self.sent = self.buffer(0 if self.sends_rows else up)
        self.message = split_message(message, up * size)
        self.front = self.message[0].data
        self.children: list[tuple[int, list[Array], Array, list[tuple[int, int, int]]]] = []
        # Example: rank 1 has the sums of two subtrees and receives one each from ranks 2 and 3. Vectors 0 and 1 are its
        # own, 2 and 3 are received, 4 and 5 are sent. The additions (1, 2, 2) and (2, 3, 5) make vector 5, and the copy
        # (0, 4) vector 4, to which nothing is added
        self.received: list[Array] = []
        for (child, count), additions in zip(self.task.children, self.task.additions, strict=True):
            message, report, vectors = self.buffer(0 if self.receives_sum else count)
            self.children.append((child, split_message(message, count * size), report, additions))
            self.received.extend(vectors)
        counts = [count for _, count in self.task.children]
        self.bytes = 0 if self.top else REPORT + up * size, len(counts) * REPORT + sum(counts) * size
        self.messages = sum(2 if count * size > BIG else 1 for count in counts)
        if self.top:
            # the server has no report of its own: others are added to the first child's, in its receive buffer, which
            # each request overwrites
            self.report = self.children[0][2]

    def __call__(self, rows: Any, report: HostReport | None) -> Array | None:
        """Add up the ``rows`` of all hosts; return the sum (columns,) at rank 0, None on the others.

        At rank 0 ``self.report`` is afterwards the report of all hosts together.
        """
        self.traffic.count(*self.bytes, self.messages)
        if report is None:
            # a new array, because the sum becomes the method's own, and the next request overwrites buffers
            total = np.empty(self.columns, self.dtype)
            if self.receives_sum:
                self.children[0][1][1:] = [total]
            self.receive([], [total])
            return total
        # packed before the children's reports are added
        FRONT.pack_into(self.front, 0, *report)
        if self.children:
            self.receive(rows, self.sent)
        elif self.sends_rows:
            self.message[1:] = [rows]
        else:
            self.sent[...] = rows
        started = time.perf_counter()
        # MPI keeps the order of parts with one tag. A blocking Send cannot hang here, because a parent posts all its
        # receives before it waits for any
        for part in self.message:
            self.comm.Send(part, self.parent, TAG)
        self.traffic.comm += time.perf_counter() - started
        return None

    def receive(self, rows: Iterable[Array], places: Iterable[Array]) -> None:
        """Receive from the children in turn, add this rank's ``rows``, and write the sums to ``places``."""
        vectors = [*rows, *self.received, *places]
        # all receives are posted at once, so that no ready child waits; additions follow the order of the route, or
        # bits would depend on arrival times
        pending = [[self.comm.Irecv(part, child, TAG) for part in parts] for child, parts, _, _ in self.children]
        for requests, (_, _, report, additions) in zip(pending, self.children, strict=True):
            started = time.perf_counter()
            for request in requests:
                request.Wait()
            self.traffic.comm += time.perf_counter() - started
            if report is not self.report:
                add_report(self.report, report)
            for a, b, target in additions:
                self.add(vectors[a], vectors[b], out=vectors[target])
        # after all additions, until which unchanged vectors stay in the children's buffers
        if not self.receives_sum:
            for number, target in self.task.copies:
                vectors[target][...] = vectors[number]

    def buffer(self, count: int) -> tuple[Array, Array, Array]:
        """Make a buffer for ``count`` vectors; return its bytes, and views of report and vectors (count, columns)."""
        message = np.zeros(REPORT + count * self.columns * self.dtype.itemsize, np.uint8)
        return message, message[:REPORT].view(float), message[REPORT:].view(self.dtype).reshape(count, self.columns)


def split_message(room: Array, size: int) -> list[Array]:
    """Split a message with vectors of ``size`` bytes into the parts in which it is sent.

    Long vectors are sent apart from the report, so that they may be in any array.
    """
    return [room[:REPORT], room[REPORT:]] if size > BIG else [room]
