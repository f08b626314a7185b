"""Selections with a different probability for each client."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.participation.selection import DATA_SHOW, Selector, SizedSelection

RANGE = 1e100  # largest ratio of two odds
TINY = 1e-40


class Importance(SizedSelection, tag="importance"):
    """⌈share·m⌉ clients (or ``count``), drawn with odds θ_i: a set S has a probability ∝ Π θ_i over its clients.

    These are draws one after the other with probabilities ∝ θ_i, all repeated until the clients differ. By default θ_i
    is what the algorithm calls its importance: L_i, the bound of ‖∇²f_i‖, or L_i/α_i for dual methods with a scaling of
    their own, whose sets have a further factor Σ α_i; clients compute it once. A method that takes the mean of the
    selected for that over all weighs replies by 1/(m p_i), p_i = P(i ∈ S)/|S|; with dual variables and control variates
    there is nothing to correct. Source of the law: X.-H. Chen, A. P. Dempster, J. S. Liu, "Weighted finite population
    sampling to maximize entropy", doi:10.1093/biomet/81.3.457 (1994).
    """

    odds: Annotated[
        tuple[float, ...] | None, Meta(description="θ_i of every client (default: its importance to the algorithm)")
    ] = None
    power: Annotated[float, Meta(description="θ_i is raised to this power")] = 1.0

    weighs_replies: ClassVar[bool] = True

    unsupported = DATA_SHOW

    @property
    def supports(self) -> Supports:
        # Without odds each client sends an exact bound of its curvature before round one, which decides its sets.
        return Supports.REPEATED | Supports.DEVICES if self.odds is None else Supports.EVERYTHING

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        if self.odds is not None and len(self.odds) != m:
            raise UserError(f"selection.odds has {len(self.odds)} numbers, but there are {m} clients: give one to each")

        def learn(replies: Any) -> Selector:
            theta, scale = (np.asarray(reply, float) for reply in replies)
            return make_selector(seed, size, self.check_odds(theta), scale)

        if self.odds is not None:
            return make_selector(seed, size, self.check_odds(np.array(self.odds, float)), np.ones(m))
        return Selector(size, lambda round, again: np.arange(0), learn=learn)

    def check_odds(self, theta: Array) -> Array:
        """Return θ_i to the power, scaled to a largest of 1; raise UserError unless above 0 and not too far apart."""
        if not (np.isfinite(theta).all() and (theta > 0).all()):
            i = int(np.argmin(np.isfinite(theta) & (theta > 0)))
            raise UserError(f"the odds of client {i} are {theta[i]:g}: selection.odds must be above 0 for every client")
        logs = self.power * np.log(theta)
        odds = np.exp(logs - logs.max())
        if odds.min() < 1 / RANGE:
            raise UserError(
                f"the largest odds are {1 / max(odds.min(), 1e-300):.3g} times the smallest: at most {RANGE:.0e} times "
                "is possible, so selection.power must be nearer to 0"
            )
        return odds


def make_selector(seed: int, size: int, odds: Array, scale: Array) -> Selector:
    """Return a selector of sets S of ``size`` clients with probability ∝ Σ scale_i · Π odds_i over S."""
    m = len(odds)
    if size == m:
        return Selector(size, lambda round, again: None)
    p, q = bernoulli_probabilities(odds, size)
    inclusion = inclusion_probabilities(p, q, size)
    plain = bool((scale == scale[0]).all())
    first = np.cumsum(scale * inclusion)

    def select(round: int, again: int) -> Array:
        rng = stream(seed, "selection", round, again)
        # the factor Σ scale_i makes the law a mixture over one client that is surely drawn: that one is drawn first
        sure = None if plain else int(np.searchsorted(first[:-1], rng.random() * first[-1], side="right"))
        # independent draws, given that there are ``size`` of them, have the wanted law; about one try in √size succeeds
        while True:
            taken = rng.random(m) < p
            if sure is not None:
                taken[sure] = True
            if np.count_nonzero(taken) == size:
                return np.flatnonzero(taken)

    return Selector(size, select, weights=size / (m * inclusion) if plain else None)


def bernoulli_probabilities(odds: Array, size: int) -> tuple[Array, Array]:
    """Return p_i and 1 − p_i of independent draws that have the odds c θ_i and Σ p_i = size < m.

    Given that there are ``size``, the clients drawn have the law Π θ_i, whatever c.
    """
    low, high = -math.log(odds.max() * len(odds)) - 1, math.log(len(odds) / odds.min()) + 1
    # bisection on a logarithmic scale: odds may be 1e100 apart, and 100 halvings reach the last bit of c
    for _ in range(100):
        c = math.exp((low + high) / 2)
        low, high = (math.log(c), high) if (c * odds / (1 + c * odds)).sum() < size else (low, math.log(c))
    return c * odds / (1 + c * odds), 1 / (1 + c * odds)


def inclusion_probabilities(p: Array, q: Array, size: int) -> Array:
    """Compute P(i ∈ S) for independent draws with p_i = 1 − q_i, given that |S| = ``size``: (m,).

    That is p_i P(|S \\ i| = size − 1)/P(|S| = size). The count without i follows from that of all, from below where
    p_i <= 1/2 and from above elsewhere, so that errors do not grow.
    """
    first, f = count_law(p, q)
    without = np.zeros(len(p))
    upwards, downwards = range(first, size), range(first + len(f) - 1, size - 1, -1)
    for side, P, Q, counts in ((p <= 0.5, p, q, upwards), (p > 0.5, q, p, downwards)):
        g, u, v = (each[side] for each in (without, P, Q))
        for k in counts:
            g = (f[k - first] - u * g) / v
        without[side] = g
    return p * without / f[size - first]


def count_law(p: Array, q: Array) -> tuple[int, Array]:
    """Return (first, P(|S| = k) for k = first, first + 1 …) of draws with p_i = 1 − q_i; the rest is below TINY."""
    parts = [(0, np.array(pair)) for pair in zip(q.tolist(), p.tolist(), strict=True)]
    while len(parts) > 1:
        joined = []
        for (i, f), (j, g) in zip(parts[::2], parts[1::2], strict=False):
            both = np.convolve(f, g)
            inside = np.flatnonzero(both > TINY)
            joined.append((i + j + int(inside[0]), both[inside[0] : inside[-1] + 1]))
        parts = joined + parts[len(parts) // 2 * 2 :]
    return parts[0]
