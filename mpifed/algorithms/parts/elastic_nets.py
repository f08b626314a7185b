"""Minimisers of sums of elastic nets: over all clients, or for each node of a graph over its neighbours and itself."""

from typing import NamedTuple

import numpy as np

from mpifed.core.arrays import namespace, to_numpy
from mpifed.core.typing import Array
from mpifed.federation.peers.neighbourhood import Neighbours


def elastic_net_mean(Z: Array, lam: float, eta: float) -> Array:
    """Return argmin_w Σ_i lam|w − z_i| + (eta/2)(w − z_i)² for each column of Z (m, n): (n,).

    If s of the z_i lie above it, the minimiser is w(s) = mean + (lam/eta)(2s − m)/m; if no s fits, it is one of the
    z_i. Either way it is the median of the 2m + 1 numbers z_1 … z_m, w(0) … w(m). Both lists are sorted, so bisection
    finds it.  Source: fedepm (Zhou, Li, arXiv:2208.11231, 2022), Lemma III.2, (15) with its sign corrected (errata).
    """
    # not Newton or subgradients: the median is exact, and takes the same steps whatever the numbers are
    m = len(Z)
    Z = np.sort(Z, axis=0)
    mean, slope = Z.mean(axis=0), Z.dtype.type(2 * lam / eta / m)
    low, high = np.zeros(Z.shape[1], np.int64), np.full(Z.shape[1], m)
    columns = np.arange(Z.shape[1])
    while (low < high).any():  # the least k with w(m − k) <= z_(k+1), z_(1) <= z_(2) <= …
        k = (low + high) // 2
        fits = mean + slope * (m / 2 - k).astype(Z.dtype) <= Z[np.minimum(k, m - 1), columns]
        low, high = np.where(fits, low, k + 1), np.where(fits, k, high)
    k = low  # of the m + 1 lowest numbers, k are z's and m + 1 − k are w's
    below = np.where(k > 0, Z[np.maximum(k - 1, 0), columns], -np.inf)
    return np.maximum(below, mean + slope * (m / 2 - k).astype(Z.dtype)).astype(Z.dtype)


class NodeGroup(NamedTuple):
    """Group of nodes with equally many neighbours."""

    nodes: Array  # (k,)
    points: Array  # (k, p, n) rising
    below: Array  # (k, p + 1, n) the weights of the lowest 0, 1, … p points
    mean: Array  # (k, n) of the points, by weight


class ElasticNets(NamedTuple):
    """Objectives Σ_j W_ij (lam‖w − z_j‖₁ + (eta/2)‖w − z_j‖²) of c nodes i, j over neighbours and i itself."""

    z: Array  # (c, n) z_i
    groups: list[NodeGroup]

    def mean(self) -> Array:
        """Return Σ_j W_ij z_j: (c, n)."""
        out = namespace(self.z).empty_like(self.z)
        for group in self.groups:
            out[group.nodes] = group.mean
        return out

    def minimise(self, lam: float, eta: float, mu: Array | None = None, V: Array | None = None) -> Array:
        """Return argmin_w of each net, plus (mu_i/2)‖w − v_i‖² if given: (c, n); mu (c, 1).

        Where weights a of the points lie below it, it is w(a) = (eta·mean + mu_i v_i − lam(2a − 1))/(eta + mu_i), else
        one of the points. w falls where the points rise, so either way it is the median of all of them together, as in
        ``elastic_net_mean``.
        """
        xp = namespace(self.z)
        out = xp.empty_like(self.z)
        for nodes, points, below, mean in self.groups:
            top = eta * mean
            total = xp.full((len(nodes), 1), eta, dtype=self.z.dtype)
            if mu is not None and V is not None:
                top, total = top + mu[nodes] * V[nodes], total + mu[nodes]
            falling = (top[:, None, :] - lam * (2 * below - 1)) / total[:, None, :]
            out[nodes] = xp.sort(xp.concat([points, falling], axis=1), axis=1)[:, points.shape[1], :]
        return out


def build_elastic_nets(neighbours: Neighbours, z: Array) -> ElasticNets:
    """Build the nets over the rows of ``neighbours`` and of the nodes themselves, z (c, n)."""
    # nodes with equally many neighbours fill one array without padding, which would be a point like any other
    counts = np.diff(to_numpy(neighbours.first))
    return ElasticNets(z, [group_nodes(np.flatnonzero(counts == p), int(p), neighbours, z) for p in np.unique(counts)])


def group_nodes(nodes: Array, p: int, neighbours: Neighbours, z: Array) -> NodeGroup:
    """Group the ``nodes`` that have p neighbours."""
    xp = namespace(z)
    picks = neighbours.first[nodes][:, None] + xp.arange(p)
    others = neighbours.weights[picks]
    # cumulative sums and not sums: their order is fixed, where that of a sum depends on the shape of its array
    rest = 1 - xp.cumulative_sum(others, axis=1)[:, -1:] if p else xp.ones((len(nodes), 1), dtype=z.dtype)
    weights = xp.concat([rest, others], axis=1)[:, :, None]
    points = xp.concat([z[nodes][:, None, :], neighbours.rows[picks]], axis=1)
    order = xp.argsort(points, axis=1, stable=True)
    rising = xp.cumulative_sum(xp.take_along_axis(xp.broadcast_to(weights, points.shape), order, axis=1), axis=1)
    below = xp.concat([xp.zeros_like(rising[:, :1, :]), rising], axis=1)
    mean = xp.cumulative_sum(weights * points, axis=1)[:, -1, :]
    return NodeGroup(nodes, xp.take_along_axis(points, order, axis=1), below, mean)
