"""Simulated time without a server: every node of a graph has a clock of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.stragglers import Devices, System
from mpifed.graphs.weights import Mixing

CLOCKS = "node clocks"  # in checkpoints
REFUSED = {
    "dropout": "nodes do not drop out, but edges may carry nothing: graph.loss",
    "deadline": "no server waits for nodes, each of which waits for its neighbours",
    "partial": "without a deadline no node takes fewer local steps",
}


class Clocks(Devices):
    """The clocks t_i of m nodes, which never measure; ``seconds`` is the largest.

    At the beginning of a round a node computes: t_i ← t_i + w/speed·exp(jitter·N(0, 1)), with the work w of the whole
    round. In an exchange it sends its message of b bytes to its d_i neighbours, one after the other, which takes
    latency_i + d_i b/bandwidth_up_i. It goes on when it and its neighbours have sent, and it has received their
    messages, one after the other:

        t_i ← max_j (t_j + latency_j + d_j b/bandwidth_up_j) + latency_i + d_i b/bandwidth_down_i,  j = i and neighbours

    So a node waits for its neighbours only, and a slow node is felt one edge farther with every exchange.
    """

    def __init__(self, system: System, seed: int, sizes: Array, model: Array, algorithm: Any) -> None:
        for key, why in REFUSED.items():
            if getattr(system, key):
                raise UserError(f"system.{key} = {getattr(system, key)} is wrong with a table [graph]: {why}")
        ready = system.devices(seed, sizes, model, algorithm, len(sizes))
        super().__init__(system, seed, sizes, model, algorithm, ready.work)
        self.t = np.zeros(len(sizes))
        self.round = 0

    def begin(self, round: int) -> None:
        """A new round; where no nodes are selected, all compute."""
        self.round = round
        super().begin(round)

    def kept(self) -> dict[str, Array]:
        return {CLOCKS: self.t}

    def resume(self, seconds: float, kept: dict[str, Array]) -> None:
        self.seconds, self.t = seconds, kept[CLOCKS]

    def row(self) -> dict[str, float]:
        """The columns of the round."""
        return {"simulated_seconds": float(self.t.max())}

    def reply(self, selected: Array | None, round: int, again: int, units: int = 1) -> Array | None:
        """Let the selected nodes (None: all) compute; all of them do."""
        ids = np.arange(len(self.t)) if selected is None else selected
        self.t[ids] += units * self.work[ids] / self.speed[ids] * self.factor(ids, round, again)
        return selected

    def exchange(self, mixing: Mixing, size: int, sending: Array | None) -> None:
        """Let messages of ``size`` bytes travel along all edges; ``sending`` (m,) bool: from these nodes only."""
        W = mixing.W
        sent = received = mixing.degrees
        if sending is not None:
            sent = sent * sending
            received = np.add.reduceat(sending[W.indices].astype(np.int64), W.indptr[:-1]) - sending
        left = self.t + np.where(sent > 0, self.latency + sent * size / self.up, 0.0)
        last = np.maximum.reduceat(np.where(sent > 0, left, 0.0)[W.indices], W.indptr[:-1])
        came = np.where(received > 0, self.latency + received * size / self.down, 0.0)
        self.t = np.where(received > 0, np.maximum(left, last), left) + came
