"""The random graph of P. Erdős and A. Rényi, in the form of E. N. Gilbert, doi:10.1214/aoms/1177706098 (1959)."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.memory import check_memory
from mpifed.core.promises import Keeps
from mpifed.core.typing import Array, Share
from mpifed.graphs.graph import EDGE, Edges, Graph


class ErdosRenyi(Graph, tag="erdos-renyi"):
    """Every pair of nodes is an edge with probability p, independently of the others; drawn once, or in each round."""

    # Edges come from the seed and the round. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    p: Annotated[Share | None, Meta(description="probability of an edge (default: 2 ln(m)/m, at most 1)")] = None
    redraw: Annotated[bool, Meta(description="draw another graph in every round")] = False

    @property
    def drawn_anew(self) -> bool:
        return self.redraw

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        p = self.p or min(1.0, 2 * math.log(max(m, 2)) / m)
        count = m * (m - 1) // 2
        check_memory(int(EDGE * p * count), f"a random graph with about {p * count:,.0f} edges")
        return Edges(numbered(successes(count, p, rng)))


def successes(count: int, p: float, rng: np.random.Generator) -> Array:
    """Which of ``count`` trials succeed, each with probability p: their numbers from 0, rising."""
    # By the gaps between successes, which have a geometric distribution: p · count draws, where a coin for each of the
    # m(m − 1)/2 pairs would take 5·10¹¹ draws for a million nodes.
    found = []
    last = -1
    while last < count:
        size = int(1.1 * p * (count - last)) + 16
        # a gap beyond the last trial is as good as any: sums of longer ones would pass the largest integer
        places = last + np.cumsum(np.minimum(rng.geometric(p, size), count + 1))
        found.append(places)
        last = int(places[-1])
    places = np.concatenate(found)
    return places[places < count]


def numbered(k: Array) -> Array:
    """The pairs numbered k of (0, 1), (0, 2), (1, 2), (0, 3) …, rising by their smaller end: (E, 2)."""
    # Pair k has the larger end h with h(h − 1)/2 <= k < h(h + 1)/2. Above 2^52 the root is rounded, by one at most: of
    # k = 6 it gives h = 4, the pair (0, 4).
    high = ((1 + np.sqrt(1.0 + 8.0 * k)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > k
    high += high * (high + 1) // 2 <= k
    ends = np.stack([k - high * (high - 1) // 2, high], axis=1)
    return ends[np.lexsort(ends.T[::-1])]
