"""The random graph of P. Erdős and A. Rényi, in the form of E. N. Gilbert, doi:10.1214/aoms/1177706098 (1959)."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.memory import check_memory
from mpifed.core.promises import Supports
from mpifed.core.typing import Array, UnitFraction
from mpifed.graphs.graph import EDGE, Edges, Graph


class ErdosRenyi(Graph, tag="erdos-renyi"):
    """Every pair of nodes is an edge with probability p, independently of the others; drawn once, or in each round."""

    # Edges follow from the seed and the round. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    p: Annotated[UnitFraction | None, Meta(description="probability of an edge (default: 2 ln(m)/m, at most 1)")] = None
    redraw: Annotated[bool, Meta(description="draw another graph in every round")] = False

    @property
    def is_redrawn(self) -> bool:
        return self.redraw

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        p = self.p or min(1.0, 2 * math.log(max(m, 2)) / m)
        count = m * (m - 1) // 2
        check_memory(int(EDGE * p * count), f"a random graph with about {p * count:,.0f} edges")
        return Edges(decode_pairs(draw_successes(count, p, rng)))


def draw_successes(count: int, p: float, rng: np.random.Generator) -> Array:
    """Draw the trials that succeed, each of ``count`` with probability p: their numbers from 0, rising."""
    # The gaps between successes have a geometric distribution: p · count draws, where one draw for each of the
    # m(m − 1)/2 pairs would be 5·10¹¹ draws for a million nodes.
    chunks = []
    last = -1
    while last < count:
        size = int(1.1 * p * (count - last)) + 16
        # Gaps are cut where they pass the last trial, so that their sums do not overflow.
        trials = last + np.cumsum(np.minimum(rng.geometric(p, size), count + 1))
        chunks.append(trials)
        last = int(trials[-1])
    trials = np.concatenate(chunks)
    return trials[trials < count]


def decode_pairs(k: Array) -> Array:
    """Return the pairs with the numbers k among (0, 1), (0, 2), (1, 2), (0, 3) …, sorted: (E, 2)."""
    # Pair k has the larger end h with h(h − 1)/2 <= k < h(h + 1)/2; k = 6 has h = 4, the pair (0, 4). Above 2^52 the
    # root is rounded, which changes h by one at most.
    high = ((1 + np.sqrt(1.0 + 8.0 * k)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > k
    high += high * (high + 1) // 2 <= k
    ends = np.stack([k - high * (high - 1) // 2, high], axis=1)
    return ends[np.lexsort(ends.T[::-1])]
