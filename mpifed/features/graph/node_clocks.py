"""Simulated time without a server: each node of a graph has its own clock."""

import numpy as np

from mpifed.core.checksummed import check_array
from mpifed.core.typing import Array
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.federation.schedule import Schedule, SelectionDraw
from mpifed.graphs.weights import Mixing

CLOCKS = "node clocks"  # in checkpoints


class NodeClocks(Schedule):
    """Clocks t_i of m nodes, computed and never measured; the simulated time is the largest.

    At the beginning of a round a node computes: t_i ← t_i + w/speed·exp(jitter·N(0, 1)), with the work w of the whole
    round. In an exchange it sends its message of b bytes to its d_i neighbours, one after the other, which takes
    latency_i + d_i b/bandwidth_up_i. It goes on when it and its neighbours have sent, and it has received their
    messages, one after the other:

        t_i ← max_j (t_j + latency_j + d_j b/bandwidth_up_j) + latency_i + d_i b/bandwidth_down_i,  j = i and neighbours

    So a node waits for its neighbours only, and a slow node delays nodes one edge farther in each exchange.
    """

    def __init__(self, devices: SimulatedDevices, all_work: bool) -> None:
        super().__init__(len(devices.sizes))
        self.devices, self.all_work = devices, all_work
        self.t = np.zeros(self.m)

    def begin(self, round: int) -> None:
        """Begin a round; where no nodes are selected, all compute."""
        super().begin(round)
        if round and self.all_work:
            self.compute(None, 1, self.again)

    def export_state(self) -> dict[str, Array]:
        return {CLOCKS: self.t}

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        check_array(CLOCKS, arrays[CLOCKS], self.t.shape, self.t.dtype)
        self.seconds, self.t = seconds, arrays[CLOCKS]

    def row(self) -> dict[str, float]:
        return {"simulated_seconds": float(self.t.max())}

    def select(self, draw: SelectionDraw, units: int) -> Array | None:
        again = self.again
        self.compute(super().select(draw, units), units, again)
        return self.selected

    def compute(self, selected: Array | None, units: int, again: int) -> None:
        """Advance the clocks of selected nodes (None: all) by their work in selection ``again`` of the round."""
        ids = np.arange(self.m) if selected is None else selected
        factor = self.devices.factor(ids, self.round, again)
        self.t[ids] += units * self.devices.work[ids] / self.devices.speed[ids] * factor

    def note_exchange(self, mixing: Mixing, size: int, sending: Array | None) -> None:
        """Advance the clocks by messages of ``size`` bytes on all edges; ``sending`` (m,) bool: from these only."""
        devices, W = self.devices, mixing.W
        sent = received = mixing.degrees
        if sending is not None:
            sent = sent * sending
            # reduceat over the rows of W sums over each node and its neighbours; the node itself is taken out again
            received = np.add.reduceat(sending[W.indices].astype(np.int64), W.indptr[:-1]) - sending
        left = self.t + np.where(sent > 0, devices.latency + sent * size / devices.up, 0.0)
        last = np.maximum.reduceat(np.where(sent > 0, left, 0.0)[W.indices], W.indptr[:-1])
        came = np.where(received > 0, devices.latency + received * size / devices.down, 0.0)
        self.t = np.where(received > 0, np.maximum(left, last), left) + came
